"""Declared filesystems on virtual machines, whose kernels have NFS."""
