"""What `rackwright top` asks, shows of each node, and may do; the screen itself is in rackwright/cli."""
