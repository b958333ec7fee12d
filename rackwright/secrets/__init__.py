"""Secrets of a cluster, and the identity that opens them."""
