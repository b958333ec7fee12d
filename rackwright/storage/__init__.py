"""storage: what declared filesystems reach, each node alone and all together, and whether checkpoints survive a lost rank."""
