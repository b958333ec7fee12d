"""Slurm whose daemons are pods of Kubernetes: a manager that drains in both."""
