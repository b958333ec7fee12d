"""Backups of a head: the program that makes them on the node, and the one that restores them there."""
