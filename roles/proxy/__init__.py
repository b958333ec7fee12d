"""The HTTP proxy through which nodes reach hosts outside the cluster."""
