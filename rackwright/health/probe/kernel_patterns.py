"""Patterns of kernel errors.

Users of the node influence kernel messages: program names and file names end up in them. Each pattern
therefore matches at the start of a message, spells out the kernel's own text there, and is longer than a
program name (15 characters), so that `NAME[123]: segfault at ...` can never match. No pattern takes text
from the middle of a message.
"""

from __future__ import annotations

import re

ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
_AER = rf"[\w-]+ (?P<pci>{ADDRESS}): "
_AMD = rf"amdgpu (?P<pci>{ADDRESS}): (?:amdgpu: )?(?:\{{\d+\}})?"
_GHES = r"(?:\{(?P<event>\d+)\})?\[Hardware Error\]: *"
_IO = r"(?:blk_update_request: |print_req_error: )?"

PATTERNS: tuple[tuple[str, str], ...] = (
    ("xid", rf"NVRM: Xid \((?:PCI:)?(?P<pci>{ADDRESS})(?: GPU-I:\d+)?\): (?P<code>\d+)\b(?P<rest>.*)"),
    ("sxid", rf"nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>{ADDRESS})\): (?P<code>\d+), (?P<rest>.*)"),
    ("gpu_named", rf"NVRM: The NVIDIA GPU (?P<pci>{ADDRESS})\s*$"),
    ("gpu_lost", (rf"NVRM: The NVIDIA GPU (?P<pci>{ADDRESS})\s+\(PCI ID: [0-9a-f:]+\)\s+(?:NVRM: )?installed in this "
                 r"system has\s+(?:NVRM: )?fallen off the bus")),
    ("gpu_lost", r"NVRM: fallen off the bus and is not responding to commands"),
    ("gpu_lost", (rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<pci>{ADDRESS}): (?:GPU has fallen off the bus|RmInitAdapter failed"
                 r"|rm_init_adapter failed)")),
    ("nvlink_failed", r"NVRM: knvlink(?:DiscoverPostRxDetLinks|UpdatePostRxDetectLinkMask)_\w+: [\w' ]+(?:failed|!)"),
    ("driver_mismatch", r"NVRM: API mismatch: "),
    ("amd_failed", (rf"{_AMD}(?:uncorrectable hardware error\(|[1-9]\d* (?:new )?uncorrectable hardware errors detected in |GPU reset"
                   r"(?:\(\d+\))? failed|(?:amdgpu: )?Fatal error during GPU init|device lost from bus!)")),
    ("amd_worn", rf"{_AMD}(?:RAS records:\d+ exceeds? threshold:\d+|GPU will not be initialized\. Replace this GPU)"),
    ("aer_uncorrected", (rf"{_AER}(?:AER: )?(?:Multiple )?Uncorrect(?:ed|able) \((?P<severity>Fatal|Non-Fatal)\) error "
                        rf"(?:message )?received(?:: | from )?(?P<source>{ADDRESS})?")),
    ("aer_uncorrected", rf"{_AER}(?:AER: )?PCIe Bus Error: severity=Uncorrect(?:ed|able) \((?P<severity>Fatal|Non-Fatal)\)"),
    ("aer_corrected", (rf"{_AER}(?:AER: )?(?:Multiple )?Correct(?:ed|able) error (?:message )?received(?:: | from )?"
                      rf"(?P<source>{ADDRESS})?")),
    ("pcie_limited", (rf"(?P<driver>[\w-]+) (?P<pci>{ADDRESS}): (?P<gbps>[\d.]+) Gb/s available PCIe bandwidth, limited by "
                     r"(?P<speed>[\d.]+) GT/s PCIe x(?P<width>\d+) link(?: at \S+ \(capable of [\d.]+ Gb/s with "
                     r"(?P<best>[\d.]+) GT/s PCIe x(?P<wide>\d+) link\))?")),
    ("mce_bank", (r"(?:mce: \[Hardware Error\]|EDAC \w+ MC\d+): CPU \d+: Machine Check(?: Event| Exception)?: \w+ Bank "
                 r"\d+: (?P<bank>[0-9a-f]{16})")),
    ("mce", r"\[Hardware Error\]: (?:Uncorrected, |Deferred error|System Fatal error|Fatal error)"),
    ("mce", r"mce: \[Hardware Error\]: (?:Machine check: |PCC |Fatal)"),
    ("ghes", _GHES + r"event severity: (?P<severity>\w+)"),
    ("ghes_section", _GHES + r"section_type: (?P<section>[\w /-]+)"),
    ("ghes_device", _GHES + rf"device_id: (?P<pci>{ADDRESS})"),
    ("memory_uncorrected", r"EDAC MC\d+: \d+ UE "),
    ("memory_uncorrected", r"Memory failure: 0x[0-9a-f]+: "),
    ("memory_uncorrected", r"mce: Uncorrected hardware memory error in user-access at "),
    ("memory_corrected", r"EDAC MC\d+: \d+ CE "),
    ("oom", r"Out of memory: Killed process \d+ "),
    ("lockup", r"(?:NMI )?watchdog: (?:BUG: soft lockup - CPU#\d+ stuck|(?:CPU\d+: )?Watchdog detected hard LOCKUP)"),
    ("lockup", r"(?:BUG|NMI): soft lockup - CPU#\d+ stuck"),
    ("lockup", r"(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected stalls? on CPU"),
    ("slow_rcu", r"(?:rcu: )?INFO: rcu_\w+ detected expedited stalls on CPUs/tasks: "),
    ("hung_task", r"INFO: task .{1,16}:\d+ (?:is )?blocked (?:in I/O wait )?(?:on an? [\w -]+ )?for more than \d+ seconds"),
    ("oops", (r"(?:BUG: unable to handle |BUG: kernel NULL pointer |BUG: Bad page (?:state|map) |kernel BUG at [\w./-]+:\d+!"
             r"|Oops: |general protection fault(?:, probably|: 0000)|Internal error: Oops|Unable to handle kernel "
             r"|(?:invalid opcode|divide error|stack segment|double fault): 0000 \[#)")),
    ("io_error", _IO + r"(?:critical (?:medium|target|nexus) error|I/O error), dev (?P<dev>[\w!-]+), sector \d+"),
    ("io_error", r"Buffer I/O error on dev(?:ice)? (?P<dev>[\w!-]+), logical block \d+"),
    ("nvme_failed", (r"nvme (?P<dev>nvme\d+): (?:controller is down; will reset|Device not ready; aborting |Removing after probe "
                    r"failure|Disabling device after reset failure|I/O .*timeout, (?:reset controller|disable controller))")),
    ("nvme_slow", r"nvme (?P<dev>nvme\d+): I/O .*timeout, (?:aborting|completion polled)"),
    ("fs_error", r"EXT4-fs error \(device (?P<dev>[\w!-]+)\): "),
    ("fs_error", r"EXT4-fs \((?P<dev>[\w!-]+)\): (?:Remounting filesystem read-only|failed to convert unwritten)"),
    ("fs_error", (r"XFS \((?P<dev>[\w!-]+)\): (?:Corruption |Metadata (?:corruption|CRC error)|Internal error |log I/O error"
                 r"|xfs_do_force_shutdown|(?:metadata )?I/O error in|Filesystem has been shut down|User initiated shutdown)")),
    ("fs_error", r"BTRFS (?:error|critical) \(device (?P<dev>[\w!-]+)(?: state \w+)?\)"),
    ("nfs_silent", r"nfs: server (?P<server>\S+) not responding, (?:still trying|timed out)"),
    ("nfs_back", r"nfs: server (?P<server>\S+) OK"),
    ("lustre_silent", (r"Lustre(?:Error)?: (?:[\w:.()-]+ )*?(?P<server>[\w.-]+-(?:OST|MDT)[0-9a-f]{4})-\S+: (?:Connection to \S+ "
                      r"\(at \S+\) was lost|This client was evicted)")),
    ("lustre_back", r"Lustre: (?:[\w:.()-]+ )*?(?P<server>[\w.-]+-(?:OST|MDT)[0-9a-f]{4})-\S+: Connection restored to"),
    ("link_down", rf"[\w-]+ (?P<pci>{ADDRESS})(?: |: )(?P<port>[\w.@-]+): (?:\w+: )?(?:[\w.-]+ )?(?:NIC )?[Ll]ink (?:is )?[Dd]own"),
    ("link_down", r"(?P<port>[\w.-]+): (?:NIC )?Link is Down"),
)  # fmt: skip
"""Kind and pattern; the first match wins. Patterns are compiled on first use."""

_HINT = re.compile(
    r"NVRM: |nvidia-nvswitch|amdgpu |AER|PCIe |Hardware Error|EDAC |emory|watchdog|lockup|rcu|INFO: |BUG|Oops|fault"
    r"|nternal error|Unable to|opcode|divide|panic|I/O|nvme |EXT4|XFS|BTRFS|nfs: |Lustre|ink "
)
_PROCESS = re.compile(r".{0,16}\[\d+\]:? |.{0,16}\(\d+\): |process '|traps: |audit: |warning: `", re.DOTALL)
"""Start of a kernel message about a process, with a name that its user has chosen."""


def match(message: str) -> tuple[str, re.Match[str]] | None:
    """The kind of error in a message; None for any other message."""
    if not _HINT.search(message) or _PROCESS.match(message):
        return None
    for kind, pattern in PATTERNS:
        found = re.match(pattern, message)
        if found:
            return kind, found
    return None
