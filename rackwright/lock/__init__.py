"""The lock: the driver stack of each kind of node, solved to exact versions and stored in the lock file."""
