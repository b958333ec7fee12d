"""What the scheduler runs on a node: probe, judge, and drain or resume this one node, by itself.

`policy` decides and touches nothing; `slurm` reads and tells Slurm; `main` is the program. All of it
is bundled with the probe and the checks into one script (`rackwright.health.bundle`), which needs
Python 3.9, its two files in /etc/rackwright/health and no machine but slurmctld's.
"""
