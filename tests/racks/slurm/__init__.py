"""The lab's own cluster file: a head and two workers with Slurm, accounting, MPI and simulated GPUs."""
