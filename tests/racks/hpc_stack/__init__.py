"""hpc_stack on two workers under Slurm: the distribution's MPI, then UCX and Open MPI built from source."""
