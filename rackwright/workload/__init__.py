"""The interface to workload managers, and each manager's implementation of it.

`protocol` is the interface for the control node, `on_node` the one for a node about itself; `lookup` finds the
implementation that a node's roles declare. Nothing outside this package names a manager. `states`, `on_node` and
their imports also run on nodes: standard library only, Python 3.9.
"""
