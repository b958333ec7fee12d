"""Serves filesystems of kind nfs from nodes of the cluster, by NFSv4.1 and 4.2 alone.

What is not mounted is not exported: an empty folder under an array that did not start would look like lost homes.
"""
