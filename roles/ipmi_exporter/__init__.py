"""ipmi_exporter: temperatures, fans, power supplies and power draw, as baseboard management controllers (BMCs) see them.

A BMC whose address is declared is read over the network, from the primary head: it answers when its node is off, too.
Nodes without one read their own, in-band. There the program runs as root, since /dev/ipmi0 is root's, but without any
capability, with a file system that it cannot write and no device but the BMC's: FreeIPMI under sudo would let any process that
takes over the exporter send raw commands as a root that can do everything else as well.
"""
