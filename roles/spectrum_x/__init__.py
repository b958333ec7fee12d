"""spectrum_x: what a host of a Spectrum-X fabric needs beside RoCE: adaptive routing in the NICs, and NVIDIA's own values.

Switches that choose a path for every packet deliver out of order. The NIC has to mark its packets as such that may be,
which is the field adaptive_routing_forced_en of the register ROCE_ACCL; firmware forgets it at a reset, so a unit sets it
again. Sources: NVIDIA, "Adaptive Retransmission: Parameters Control", sample usage (`mlxreg --reg_name ROCE_ACCL`, fields,
the same for mstreg); public setups of Spectrum-X and RoCE that set the field so, several that agree; read 2026-11-25.

The rest of a Spectrum-X host is in NVIDIA's profiles of its reference architecture, which are not public (NVIDIA Network
Operator, Spectrum-X configuration: "contact your NVIDIA CPM", read 2026-11-25). Those values are therefore the site's to
declare, `registers` and `firmware`, and none of them has a default here.
"""
