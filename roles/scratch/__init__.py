"""Folders of jobs and users on a node's local scratch, made and removed by root, with a limit each.

storage_layout makes the filesystem. A prolog makes the folder of a job below one that root alone can write, an epilog moves it
aside in one rename and removes it within a time limit, and a timer removes the rest. The node runs one program of
Python's standard library that works on descriptors (rackwright.node_folders), since users write beside it.
"""
