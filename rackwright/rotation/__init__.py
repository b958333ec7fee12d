"""Replaces a secret that nodes use; safe to interrupt at any point."""
