"""IP over InfiniBand: an interface for each rail, and children in partitions, with the addresses of the cluster file.

It carries control traffic and storage; NCCL uses RDMA itself. The role `network` has Ethernet ports alone.
"""
