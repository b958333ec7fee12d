"""Kernel, limits, CPU and journal settings of a GPU or HPC node, each proven from the live system."""
