"""The lab on this machine for real: needs root and the programs of a lab host, and fails without them."""
