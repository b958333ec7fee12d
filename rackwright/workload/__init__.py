"""What a workload manager must offer to the rest of rackwright, and each manager's implementation of it.

`protocol` is what the control node asks for, `on_node` what a node asks about itself, `lookup` finds the
implementation that a node's roles declare. Nothing outside this room names a manager. `states`, `on_node` and
what they import run on nodes too: standard library alone, Python 3.9.
"""
