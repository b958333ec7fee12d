"""Which of the counters of `nvidia-smi nvlink -e` are errors: their names differ by NVLink generation.

NVLink 5 corrects errors transparently and counts the corrections: a healthy Blackwell link shows FEC
histogram bin 0 in the billions and raw bit errors on every lane.

Names of generation 5: as recorded of B300 with driver 595.91.07, and in nvidia-smi's own page
(PLR); of generations 1 to 4: as recorded of H100. What they mean: NVML field values, and which of
them fail a GPU: NVIDIA DCGM's health watch, where a failed recovery is a failure and a successful
one a warning. Read 2026-11-23.
"""

from __future__ import annotations

import re

JUDGED = {
    "replay": "nvlink_replays",
    "recovery": "nvlink_recoveries",
    "crc": "nvlink_crc",
    "crc_flit": "nvlink_crc",
    "crc_data": "nvlink_crc",
    "ecc": "nvlink_errors",
    "malformed_packet": "nvlink_errors",
    "buffer_overrun": "nvlink_errors",
    "rx": "nvlink_errors",
    "rx_remote": "nvlink_errors",
    "rx_general": "nvlink_errors",
    "local_link_integrity": "nvlink_errors",
    "tx_discards": "nvlink_errors",
    "effective": "nvlink_errors",
    "symbol": "nvlink_errors",
    "link_recovery_successful_events": "nvlink_recoveries",
}
"""Counters whose increase is judged, and the limit of each."""
FATAL = ("link_recovery_failed_events",)
"""A single one fails: the link did not come back."""
NO_ERRORS = re.compile(
    r"total_link_recovery_events|fec_errors_-_\d+|raw_(ber|errors)_.*|(effective|symbol)_ber|plr_.*"
    r"|(tx|rx)_(packets|bytes)"
)
"""Throughput, corrections, and sums of counters that are judged separately."""


def is_known(name: str) -> bool:
    """Whether a counter is judged, or known to be harmless."""
    return name in JUDGED or name in FATAL or NO_ERRORS.fullmatch(name) is not None
