"""Reads a cluster file: returns the resolved cluster, or reports every mistake in the file at once."""
