"""Ports with stable names, bonds, VLANs, addresses, routes; a change that cuts the node off is undone by the node."""
