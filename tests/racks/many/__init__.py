"""Racks of many small nodes."""
