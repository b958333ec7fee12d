"""Finds and removes what an intruder leaves on a node to get back in: keys, accounts, rights, settings.

It runs after all other roles, so that what they create exists. What they declare is allowed without being listed
again; what else a site needs goes into an allow list. What is removed is kept in
/var/lib/rackwright/quarantine, which only root reads: evidence is not destroyed.
Accounts are locked and mode bits are cleared; no account and no program is deleted.

The key and the rule of sudo with which rackwright itself reaches the node are never removed.
"""
