"""lldp: lldpd on every node, so that switches and nodes know which of their ports are connected.

Each node announces its name of the cluster file, and the interface's name as the port: what a switch shows, and what
`rackwright fabric check` compares, is then `gpu017`, `rail3`, and not two MAC addresses.
"""
