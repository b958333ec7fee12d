"""Storage bench: the performance of declared filesystems, each node alone and all together, and whether checkpoints survive a lost rank."""
