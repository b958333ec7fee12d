"""Folders on local filesystems that root creates and removes on a node, next to users who may write there.

Standard library alone, Python 3.9: programs of roles carry these modules (rackwright.node_programs). No path of a user's is
ever opened by name: everything goes through descriptors of folders, which links and renames cannot redirect.
"""
