"""What the head reports of Slurm to Prometheus, in two programs: one asks Slurm, the other answers Prometheus.

`collector` runs as Slurm's own user, which alone sees every job whatever PrivateData hides; it listens nowhere. `server`
listens, and has no right but to read the file that the collector writes. So scrapes never reach slurmctld, and whoever
breaks into the server gains no rights in Slurm. Both run on nodes: Python 3.9, the standard library, and of the
distribution's packages prometheus_client (both), bcrypt and yaml (the server).
"""
