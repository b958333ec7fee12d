"""What may reach a node, and what listens there: a separate nftables table, and a check of all sockets."""
