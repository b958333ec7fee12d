"""The HTTP proxy by which nodes reach what is outside the cluster."""
