"""load_balancer: haproxy on heads, which spreads connections to a service over the nodes that run it."""
