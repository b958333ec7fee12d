"""The lock: the whole driver stack of each kind of node, solved to exact versions, which the lock file keeps."""
