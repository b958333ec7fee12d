"""Compares the actual fabric with the declared one: discovery, parsers, and differences."""
