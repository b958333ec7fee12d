"""DCGM 4: the host engine every other tool asks about GPUs, for the CUDA major the driver brings."""
