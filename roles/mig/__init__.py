"""MIG: each GPU cut as the node's `mig:` declares, now and after every reboot.

GPU instances live in the driver's memory and are gone when it is unloaded, and from Hopper on the mode is too;
a unit cuts the GPUs again at boot, before anything uses them. Cutting anew ends what runs on a GPU, so it is
disruptive: a worker is drained first.
"""
