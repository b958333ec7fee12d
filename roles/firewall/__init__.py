"""What may reach a node, and what listens there: nftables with a table of our own, and a check of all sockets."""
