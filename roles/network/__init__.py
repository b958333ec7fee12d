"""Ports with stable names, bonds, VLANs, addresses, routes; the node rolls back a change that cuts it off."""
