"""roce: quality of service of RDMA over Ethernet, on every rail of a RoCE fabric.

A lossless or congestion-controlled fabric works only where nodes and switches agree on three numbers: the DSCP of RDMA
packets, the priority it is mapped to, and the DSCP of congestion notifications (CNP). They are the site's, so none has a
default. The NIC forgets them at each boot and each reload of its driver: a unit applies them at boot with the program
that `verify` reads the NIC with (node.py), and an apply compares what the NIC reports and not what was once written.

Devices made in software (rxe) have no priorities: for them, only MTU, GIDs and ARP are claimed.
"""
