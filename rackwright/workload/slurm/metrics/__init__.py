"""Slurm's metrics for Prometheus on the head, in two programs: one queries Slurm, the other answers Prometheus.

`collector` runs as Slurm's user, the only one that sees every job even with PrivateData; it does not listen. `server`
listens, and may only read the file that the collector writes. So scrapes never reach slurmctld, and an attacker who
takes over the server gains no rights in Slurm. Both run on nodes: Python 3.9, the standard library, and of the
distribution's packages prometheus_client (both), bcrypt and yaml (the server).
"""
