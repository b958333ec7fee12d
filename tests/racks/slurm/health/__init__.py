"""Nodes that judge, drain and resume themselves under Slurm, and `rackwright why`."""
