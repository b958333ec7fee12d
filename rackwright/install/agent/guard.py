"""Preconditions of the agent: it runs from memory, on the machine that it was made for."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import Any

from rackwright.install.agent.programs import AgentError

CONFIG = "/rackwright/config.json"
AUTHORITY = "/rackwright/ca.pem"
_IN_MEMORY = {"rootfs", "ramfs", "tmpfs"}
_MODES = ("install", "discover", "erase")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True, slots=True)
class Network:
    """How the machine reaches the head."""

    mac: str
    address: str | None
    """Address with prefix length; None: DHCP."""
    gateway: str | None
    vlan: int | None


@dataclass(frozen=True, slots=True)
class Config:
    """Configuration that the head put on this machine's boot medium."""

    server: str
    token: str = field(repr=False)
    node: str
    run: str
    serial: str | None
    mode: str
    network: Network


def take(path: str = CONFIG, mounts: str = "/proc/self/mounts") -> Config:
    """The configuration; its file is removed, so from then on only this process has the token.

    AgentError on a machine that did not boot from the head's medium; its files are not touched.
    """
    with open(mounts, encoding="utf-8") as file:
        require_memory(file.read())
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        os.unlink(path)
    except OSError as error:
        raise AgentError(f"this machine is not armed: {path}: {error.strerror}") from None
    return parse(text)


def require_memory(mounts: str) -> None:
    """AgentError unless / is in memory; `mounts` as in /proc/self/mounts, where the last entry wins."""
    kinds = [words[2] for line in mounts.splitlines() if len(words := line.split()) > 2 and words[1] == "/"]
    # the kernel lists no entry for an initramfs with nothing mounted over it
    if kinds and kinds[-1] not in _IN_MEMORY:
        raise AgentError(
            f"/ is on {kinds[-1]}, not in memory: this is an installed system, nothing was changed"
        )


def parse(text: str) -> Config:
    """Parses config.json; AgentError if it is incomplete."""
    try:
        data = json.loads(text)
        if data["version"] != 1:
            raise AgentError(f"{CONFIG} has version {data['version']!r}; this agent reads version 1")
        config = Config(
            server=_text(data, "server"),
            token=_text(data, "token"),
            node=_text(data, "node"),
            run=_text(data, "run"),
            serial=_text(data, "serial") if data["serial"] is not None else None,
            mode=_text(data, "mode"),
            network=_network(data["network"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        # no message may quote the text, which contains the token
        name = error.args[0] if isinstance(error, KeyError) else type(error).__name__
        raise AgentError(f"{CONFIG} is incomplete: {name}") from None
    if config.mode not in _MODES:
        raise AgentError(f"{CONFIG}: mode is {config.mode!r}, not one of: {', '.join(_MODES)}")
    if not config.server.startswith("https://"):
        raise AgentError(f"{CONFIG}: server is {config.server!r}, not an https:// address")
    if not _MAC.fullmatch(config.network.mac):
        raise AgentError(f"{CONFIG}: {config.network.mac!r} is not a MAC address in lower case")
    return config


def require_machine(config: Config, serial: str | None, command_line: str) -> None:
    """AgentError on a machine with another serial number, or booted for another run."""
    if config.serial is not None and serial != config.serial:
        raise AgentError(
            f"this machine's serial number is {serial!r}, but {config.node} is declared with {config.serial!r}"
        )
    runs = [word.partition("=")[2] for word in command_line.split() if word.startswith("rackwright.run=")]
    if runs and runs[-1] != config.run:
        raise AgentError(f"this machine was booted for run {runs[-1]}, but {CONFIG} is for run {config.run}")


def _text(data: dict[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str) or not value:
        raise KeyError(name)
    return value


def _network(data: dict[str, Any]) -> Network:
    vlan = data["vlan"]
    if vlan is not None and (not isinstance(vlan, int) or not 1 <= vlan <= 4094):
        raise KeyError("network.vlan")
    return Network(
        mac=_text(data, "mac").lower(),
        address=_text(data, "address") if data["address"] is not None else None,
        gateway=_text(data, "gateway") if data["gateway"] is not None else None,
        vlan=vlan,
    )
