"""Which dcgm-exporter belongs to which DCGM: NVIDIA tests them as pairs, and asks for no other.

Sources: hack/VERSION of NVIDIA/dcgm-exporter at each release (read 2026-11-27); 4.6.0 with 4.8.3 by the package of it in
Azure's archive, which is built against datacenter-gpu-manager-4-core 1:4.6.0-1 (read 2026-11-27).
"""

from __future__ import annotations

PAIRS = {"4.4.2": "4.7.1", "4.5.1": "4.8.0", "4.5.2": "4.8.1", "4.5.3": "4.8.2", "4.6.0": "4.8.3"}


def pair_of(dcgm: str) -> str | None:
    """The exporter of a version of DCGM; None where no pair is known. A locked version may be a pattern, e.g. `1:4.6.0-*`."""
    upstream = dcgm.rpartition(":")[2].partition("-")[0]
    return PAIRS.get(upstream)
