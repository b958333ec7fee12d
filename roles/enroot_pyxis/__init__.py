"""enroot_pyxis: `srun --container-image`, by NVIDIA's enroot and the SPANK plugin pyxis.

Both come as files: enroot's packages from its GitHub releases, pyxis as a source tarball or a package, from
the site's `mirrors.files` where there is one. Each is declared by version and digest, and a file
with another digest is refused.

pyxis is loaded by every srun, sbatch, slurmd and slurmstepd, and must be built against the Slurm that
loads it. A build is therefore marked with the versions of both, and done again when Slurm's changes.
Without the plugin on a login node or head, its srun does not know the flags.

The role comes after slurm: what it builds against, and the daemon it restarts, are slurm's.
"""
