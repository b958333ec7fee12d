"""Metrics of a user's jobs: a server that authenticates with MUNGE, and its client. Both run on nodes."""
