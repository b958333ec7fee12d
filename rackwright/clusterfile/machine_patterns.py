"""Messages for hardware-related values that do not match their pattern."""

from __future__ import annotations

MACHINE_PATTERNS: dict[str, tuple[str, str]] = {
    r"^[A-Za-z0-9][A-Za-z0-9 ._/+-]{0,63}$": (
        "Not a valid machine serial number: letters, digits, spaces and `._/+-`, at most 64 characters.",
        "CZJ0420G3K",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9:._+-]{0,200}$": (
        "Not a valid name in /dev/disk/by-path: letters, digits and `:._+-`.",
        "pci-0000:00:17.0-ata-1",
    ),
    r"^[A-Za-z0-9_.-]+(=[A-Za-z0-9_.,:/@+-]*)?$": (
        "Not a valid kernel argument: a name, or name=value without spaces and quotes.",
        "iommu=pt",
    ),
    r"^tty(S|AMA)[0-9]{1,2}(,[0-9]{4,7}[a-z0-9]{0,3})?$": (
        "Not a valid serial console: a device and a speed.",
        "ttyS0,115200",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$": (
        "Not a valid BMC user name: letters, digits, `.`, `_` and `-`, at most 32 characters.",
        "admin",
    ),
    r"^[0-9A-Za-z][0-9A-Za-z._+~:()/, -]{0,95}$": (
        "Not a valid firmware version: letters, digits, spaces and `._+~:()/,-`, at most 96 characters.",
        "U58 v2.44 (01/17/2025)",
    ),
    r"^[0-9A-Za-z*?][0-9A-Za-z*?._+:()/, #-]{0,127}$": (
        "Not a valid component id or name: letters, digits, spaces, `._+:()/,#-`, and the wildcards `*` and `?`.",
        "HGX_FW_GPU_*",
    ),
    r"^[0-9A-Za-z_][0-9A-Za-z_.:#-]{0,127}$": (
        "Not a valid BIOS attribute name: letters, digits and `_.:#-`, as in the vendor's attribute registry.",
        "ProcVirtualization",
    ),
    r"^[ -~]{0,256}$": ("Not a valid BIOS attribute value: at most 256 ASCII characters.", "Enabled"),
}
