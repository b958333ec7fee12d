"""What the scheduler runs on a node: probe, judge, and drain or resume this one node, by itself.

`policy` decides and touches nothing; `rackwright.workload.on_node` asks and instructs the workload manager;
`main` is the program. All of it is installed with the probe and the checks as a folder of modules
(`rackwright.node_programs`), which needs Python 3.9, its two files in /etc/rackwright/health and no machine but slurmctld's.
"""
