"""Kubernetes for a rack without internet: packages and images made of Debian's sources, and served to the nodes."""
