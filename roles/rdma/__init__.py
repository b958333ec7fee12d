"""RDMA devices: drivers, persistent names by rail, software devices for labs, and the required state of each port.

A device is declared by its PCI address and gets its name from udev, so that NCCL, burn-in, the fabric check and a person
at a rack use the same name for the same cable. Firmware and link type are compared here; firmware is updated elsewhere.
"""
