"""The health check that the scheduler, or a timer, runs on a node: probe, judge, and drain or resume this node on its own.

`policy` decides without side effects; `rackwright.workload.on_node` queries and instructs the workload manager;
`main` is the program. All of it is installed with the probe and the checks as a folder of modules
(`rackwright.node_programs`), which needs Python 3.9, its two files in /etc/rackwright/health and no other node than that of slurmctld or the API server.
"""
