"""Bare-metal installation: writes an image to the disks of a declared machine, and to nothing else."""
