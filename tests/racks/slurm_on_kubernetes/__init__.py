"""Slurm in pods of a rack with Kubernetes."""
