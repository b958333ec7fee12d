"""Checks of the dcgm role."""

from __future__ import annotations

import re
from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, listed_gpus
from rackwright.claims.units import runs
from rackwright.lock.for_roles import group_of
from rackwright.lock.versions import upstream
from rackwright.roles.dcgm.options import DcgmOptions

_DEFAULT = "127.0.0.1:5555"
"""The host engine that dcgmi connects to by default."""


def parse_discovery(text: str) -> int:
    """`dcgmi discovery -l` begins with `8 GPUs found.` or `1 GPU found.`; and lists each by its number."""
    found = re.search(r"^\s*(\d+) GPUs? found\.", text, re.MULTILINE)
    if found is None:
        raise Undetermined(f"dcgmi reports no number of GPUs: {text.strip()[:80]!r}")
    listed = len(re.findall(r"PCI Bus ID:", text))
    if listed != int(found[1]):
        raise Undetermined(f"dcgmi reports {found[1]} GPUs and lists {listed}")
    return listed


def parse_version(text: str) -> str:
    """`dcgmi  version: 4.6.0`."""
    found = re.search(r"version:\s*([0-9.]+)", text)
    if found is None:
        raise Undetermined(f"dcgmi reports no version: {text.strip()[:80]!r}")
    return found[1]


def _counts(context: CheckContext[DcgmOptions]) -> str:
    options, declared = context.options, listed_gpus(context)
    engine = f"{options.listen}:{options.port}"
    host = "" if engine == _DEFAULT else f"--host {engine} "
    found = parse_discovery(context.output(f"timeout 30 dcgmi discovery {host}-l"))
    if found != declared:
        fail(f"DCGM finds {found} of {declared} declared GPUs")
    return f"{found} GPUs"


def _version(context: CheckContext[DcgmOptions]) -> str:
    packages = group_of(context.cluster, context.node).packages
    locked = upstream(packages["datacenter-gpu-manager-4-core"])
    found = parse_version(context.output("dcgmi --version"))
    if found != locked:
        fail(f"dcgmi is {found}, not the locked {locked}")
    return found


CHECKS = (
    Check("DCGM is installed as locked and held", as_locked),
    Check("dcgmi has the locked version", _version),
    Check("the DCGM host engine is running", partial(runs, unit="nvidia-dcgm.service"), settle_seconds=20),
    Check("DCGM finds the declared GPUs", _counts, settle_seconds=30),
)
