"""dcgm_exporter: what DCGM measures of GPUs, for Prometheus, with the job that has each GPU.

NVIDIA's package, at the version that it pairs with the locked DCGM. It asks the host engine that the dcgm role runs, and
so needs no right and no device of its own. Which job has which GPU, a script of the job's prolog writes into a folder
that it reads. Lab nodes with simulated GPUs have a program of the lab's in its place, which is configured all the same.
"""
