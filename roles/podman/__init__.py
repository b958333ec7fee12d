"""podman: containers without a daemon and, for users, without root.

Each declared user gets a range of subordinate ids that follows from the uid alone (uid x 65536), so it is
the same on every node and ranges never overlap, independent of the order of users.
"""
