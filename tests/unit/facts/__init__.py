"""Facts: what they make of a node's answers."""
