"""What to print when a text about a machine does not match its pattern."""

from __future__ import annotations

MACHINE_PATTERNS: dict[str, tuple[str, str]] = {
    r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]{0,63}$": (
        "Not a serial number of a machine: letters, digits, spaces and `._/+-`, at most 64 characters.",
        "CZJ0420G3K",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9:._+-]{0,200}$": (
        "Not a name below /dev/disk/by-path: letters, digits and `:._+-`.",
        "pci-0000:00:17.0-ata-1",
    ),
    r"^[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/@+-]*)?$": (
        "Not an argument of the kernel: a name, or name=value without spaces and quotes.",
        "iommu=pt",
    ),
    r"^tty(S|AMA)[0-9]{1,2}(,[0-9]{4,7}[a-z0-9]{0,3})?$": (
        "Not a serial console: the device and its speed.",
        "ttyS0,115200",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$": (
        "Not a user of a BMC: letters, digits, `.`, `_` and `-`, at most 32 characters.",
        "admin",
    ),
    r"^[0-9A-Za-z][0-9A-Za-z._+~:()/, -]{0,95}$": (
        "Not a version of firmware: letters, digits, spaces and `._+~:()/,-`, at most 96 characters.",
        "U58 v2.44 (01/17/2025)",
    ),
    r"^[0-9A-Za-z*?][0-9A-Za-z*?._+:()/, #-]{0,127}$": (
        "Not the id or name of a component: letters, digits, spaces, `._+:()/,#-`, and the wildcards `*` and `?`.",
        "HGX_FW_GPU_*",
    ),
    r"^[0-9A-Za-z_][0-9A-Za-z_.:#-]{0,127}$": (
        "Not the name of a BIOS attribute: letters, digits and `_.:#-`, as the maker's attribute registry has it.",
        "ProcVirtualization",
    ),
    r"^[ -~]{0,256}$": ("Not a value of a BIOS attribute: ASCII characters, at most 256.", "Enabled"),
}
