"""dcgm_exporter: what DCGM measures of GPUs, for Prometheus, with the job that has each GPU.

NVIDIA's package, at the version that it pairs with the locked DCGM. It asks the host engine that the dcgm role runs, and
so needs no privileges and no device. A prolog script writes which job has which GPU into a folder
that it reads. Lab nodes with simulated GPUs run a program of the lab instead, which is configured the same way.
"""
