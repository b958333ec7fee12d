"""Folders of jobs and users on a node's local scratch, made and removed by root, with a limit each.

storage_layout makes the filesystem. A prolog makes the folder of a job below one that root alone can write, an epilog takes it
away by one rename and removes it for a bounded time, and a timer removes the rest. What runs on the node is one program of
Python's standard library that goes by descriptors (rackwright.node_folders), as users write beside it.
"""
