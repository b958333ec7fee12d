"""The serial console of a node with a Redfish BMC: over the BMC's SSH, or IPMI Serial over LAN."""

from __future__ import annotations

from collections.abc import Iterable

from rackwright.bmc.documents import Document, number, sub, text
from rackwright.bmc.target import Target

_ENTRY = {"dell": "console com2", "hpe": "vsp", "supermicro": "start /system1/sol1"}
"""Command that opens the console in the shell of a vendor's BMC; others open it on their console port."""


def console_argv(target: Target, system: Document, managers: Iterable[Document]) -> list[str] | None:
    """The command line, without secrets: ssh asks for the password. None if the BMC offers no console over SSH."""
    ssh = sub(system, "SerialConsole", "SSH")
    maker = (text(system, "Manufacturer") or "").lower()
    usual = next((command for name, command in _ENTRY.items() if maker.startswith(name)), None)
    port, entry = int(number(ssh, "Port") or 22), text(ssh, "ConsoleEntryCommand")
    if ssh.get("ServiceEnabled") is not True:
        port, entry = 22, None
        where = ("SerialConsole",) if usual is None else ("SerialConsole", "CommandShell")
        if not any("SSH" in _types(one, name) for one in managers for name in where):
            return None
    if not 0 < port < 65536:
        return None
    if entry is None and port == 22:
        entry = usual
    argv = ["ssh", "-t", "-p", str(port), "-l", target.bmc.user, str(target.bmc.address)]
    return argv + ([entry] if entry is not None and not entry.startswith("-") else [])


def _types(manager: Document, name: str) -> list[object]:
    types = sub(manager, name).get("ConnectTypesSupported")
    return types if isinstance(types, list) else []
