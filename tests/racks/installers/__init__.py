"""Debian's own installer, booted by rackwright on virtual machines with virtual BMCs."""
