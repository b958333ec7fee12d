"""Tests that need no rack: one folder for each room of rackwright."""
