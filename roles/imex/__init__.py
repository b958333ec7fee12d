"""IMEX on nodes that share an NVLink domain with others (NVL72): one daemon each, which knows all its peers.

The domain is declared, by the nodes' rack or by name; it is never what a daemon happens to reach.
"""
