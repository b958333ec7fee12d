"""InfiniBand's subnet manager on nodes of the cluster: opensm, a master and its standbys, partitions and routing.

A fabric whose switches or UFM run the subnet manager does not need this role. Every subnet (what is connected by
cables of switches) has its own opensm, as our own unit: the distributions' units differ in where they read their
settings, and Debian's starts one on every port.
"""
