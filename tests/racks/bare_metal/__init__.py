"""Racked machines and their virtual BMCs."""
