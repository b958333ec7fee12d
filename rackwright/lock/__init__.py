"""The lock: the whole driver stack of each kind of node, solved as one thing and written down."""
