"""Faults made in a lab rack on purpose, each to see that its alert fires, reaches a person, and resolves after healing."""
