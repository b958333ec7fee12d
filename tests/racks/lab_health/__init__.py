"""Nodes with simulated GPUs that drain and resume themselves, on a rack of their own."""
