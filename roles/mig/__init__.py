"""MIG: each GPU partitioned as the node's `mig:` declares, now and after every reboot.

GPU instances live in the driver's memory and are gone when it is unloaded; from Hopper on, so is the mode. A unit
partitions the GPUs again at boot, before anything uses them. Partitioning ends what runs on a GPU, so it is
disruptive: a worker is drained first.
"""
