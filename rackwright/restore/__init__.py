"""Restores the backup of a head: fetched, decrypted on the control node, and streamed to the head.

The identity that decrypts a backup never leaves the control node, and no part is stored there in clear.
"""
