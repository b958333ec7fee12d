"""node_exporter: a node's own figures - CPUs, memory, disks, network, InfiniBand ports, units - for Prometheus.

The distribution's package, started with a command line of ours. rackwright's other roles hand in their figures through
its textfile folder, where root alone may write: Prometheus takes what is there for the node's own figures.
"""
