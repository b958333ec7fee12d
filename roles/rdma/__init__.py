"""RDMA devices: drivers, names by rail that stay, software devices for labs, and what a port must be.

A device is declared by its PCI address and gets its name from udev, so that NCCL, burn-in, the fabric check and a person
at a rack say the same word for the same cable. Firmware and link type are compared here; firmware is updated elsewhere.
"""
