"""Pieces of PromQL that several rules share."""

from __future__ import annotations

PLACE = "node, rack, leaf, sku"
"""Labels by which alerts are grouped, silenced and inhibited; every alert about a node has them."""
NETWORK_FILESYSTEMS = "nfs4?|lustre|beegfs(_nodev)?|ceph|gpfs|wekafs|cifs|9p|fuse[.].+"
"""Types of filesystems that many nodes share."""
NODE_DOWN = 'up{job="node"} == 0'
NODE_UP = 'up{job="node"} == 1'


def placed(expression: str) -> str:
    """Adds rack, leaf and SKU to series that only have `node`, such as the workload manager's."""
    return f"({expression}) * on (node) group_left (rack, leaf, sku) rackwright_declared_node"


def or_zero(expression: str) -> str:
    """A value by node: 0 if the node is up but has no series, no value if the node is down."""
    return f"({expression} or on (node) (max by (node) ({NODE_UP}) * 0))"
