"""Tests on racks of real nodes: one folder for each rack."""
