"""Bare metal: a machine that is declared becomes a node, with an image on its disks, and nothing else is written to."""
