"""storage_bench: what `rackwright storage bench` runs on workers: fio, and PyTorch where it is declared.

The ranks of all nodes together are Python alone, started by the workload manager: neither MPI nor mpi4py is needed.
"""
