"""Checks of the cephfs_client role: mount.ceph, the keys, the session with the servers, and each mount."""

from __future__ import annotations

import re

from rackwright.claims import modules, mounts
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import has_access, holds_secret_text
from rackwright.claims.packages import held_at, installed
from rackwright.model.platforms import Capability
from rackwright.roles.cephfs_client.options import CephfsClientOptions
from rackwright.secrets.store import store_of

Context = CheckContext[CephfsClientOptions]
STATUS = "cat /sys/kernel/debug/ceph/*/status"
"""instance and blocklisted of each client: Linux, fs/ceph/debugfs.c (status_show), read 2026-11-26."""


def _installed(context: Context) -> str:
    wanted = context.options.packages(context.node)
    return installed(context, wanted) if context.options.version is None else held_at(context, wanted)


def _module(context: Context) -> str:
    return modules.is_built(context, "ceph")


def _keys(context: Context) -> str:
    store = store_of(context.cluster)
    found = []
    for one in context.options.mounted(context.node):
        path = context.options.key_file(one)
        has_access(context, path, "600", "root", "root")
        value = store.get(context.options.access[one.name].stored_as).reveal()
        found.append(holds_secret_text(context, path, f"{value.strip()}\n"))
    return ", ".join(found)


def parse_status(text: str) -> dict[str, bool]:
    """Whether the servers have blocklisted it, by instance of a client."""
    found: dict[str, bool] = {}
    instance = None
    for line in text.splitlines():
        if (match := re.fullmatch(r"instance: (\S+) .*", line.strip())) is not None:
            instance = match[1]
        elif (
            match := re.fullmatch(r"bl(?:ock|ack)listed: (true|false)", line.strip())
        ) is not None and instance:
            found[instance] = match[1] == "true"
    if not found:
        raise Undetermined(f"the kernel shows no Ceph client: {text.strip()[:80]!r}")
    return found


def _session(context: Context) -> str:
    found = parse_status(context.output("sh -c %s", STATUS))
    if evicted := [instance for instance, listed in found.items() if listed]:
        fail(f"the servers have blocklisted {', '.join(evicted)}: remount it")
    return ", ".join(found)


_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
CHECKS: tuple[Check, ...] = (
    Check("the Ceph client is installed as declared", _installed, needs=_NEEDS),
    Check("the ceph module exists for the declared kernel", _module, needs=_NEEDS),
    Check("the CephFS keys are as supplied and only root can read them", _keys, needs=_NEEDS),
    *mounts.checks("CephFS"),
    # after the mounts, whose first use makes the client
    Check("Ceph's servers have not evicted this client", _session, needs=_NEEDS, live=True),
)
