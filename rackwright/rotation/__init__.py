"""Replacing a secret that nodes use by a new one, safe to interrupt at any point."""
