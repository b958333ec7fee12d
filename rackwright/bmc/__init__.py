"""Baseboard management controllers: power, boot, health and logs of a node without its operating system.

One interface (`interface.py`), two implementations: Redfish and IPMI. A BMC is treated like a node: its answers are
limited in size and time, and parsed as untrusted data.
"""
