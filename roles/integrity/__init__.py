"""What an intruder leaves on a node to come back: keys, accounts, rights, settings. Each is found, and taken away.

It runs after all other roles, so that what they make is there. What they declare is right without being named
again; what a site has on purpose besides that is named in an allow list. What is taken away is kept in
/var/lib/rackwright/quarantine, which only root reads: evidence is not destroyed.
Accounts are closed and mode bits are taken away; no account and no program is deleted.

The key and the rule of sudo with which rackwright itself reaches the node are never taken away.
"""
