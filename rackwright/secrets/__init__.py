"""Secrets of a cluster, and the identity that decrypts them."""
