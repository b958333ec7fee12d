"""The driver for real: Debian's own packages, built by DKMS on lab nodes, for kernels that run nowhere here."""
