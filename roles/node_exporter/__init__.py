"""node_exporter: a node's own figures - CPUs, memory, disks, network, InfiniBand ports, units - for Prometheus.

The distribution's package, started with rackwright's command line. Other roles publish their metrics through
its textfile folder, where only root may write: Prometheus treats its contents as the node's own metrics.
"""
