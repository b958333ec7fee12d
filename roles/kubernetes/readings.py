"""What the API has of nodes and pods, read. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

CERTIFICATES = """\
cd /etc/kubernetes || exit 1
for one in pki/*.crt pki/etcd/*.crt; do
    printf '%s ' "$one"; openssl x509 -noout -enddate -in "$one" || exit 1
done
for one in admin.conf controller-manager.conf scheduler.conf; do
    printf '%s ' "$one"
    sed -n 's/^ *client-certificate-data: //p' "$one" | base64 -d | openssl x509 -noout -enddate || exit 1
done
printf 'kubelet '; openssl x509 -noout -enddate -in /var/lib/kubelet/pki/kubelet-client-current.pem
"""
"""Prints `name notAfter=Nov 28 04:45:00 2027 GMT` a line."""
_END = re.compile(r"(\S+) notAfter=(\w{3} +\d{1,2} \d{2}:\d{2}:\d{2} \d{4}) GMT")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
_FACTORS: dict[str | None, float] = {
    None: 1.0,
    "m": 0.001,
    **{unit: 1000.0**power for power, unit in enumerate(("k", "M", "G", "T"), 1)},
    **{unit: 1024.0**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), 1)},
}


def quantity(text: object) -> float | None:
    """A quantity of the API as a number; None where it is none."""
    found = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else float(found[1]) * _FACTORS[found[2]]


def unready(node: Mapping[str, Any]) -> list[str]:
    """Why a node is not fit, by its conditions; a condition that is missing or Unknown is a reason too."""
    conditions = {one.get("type"): one for one in node.get("status", {}).get("conditions", [])}
    problems = []
    ready = conditions.get("Ready")
    if ready is None:
        problems.append("the node object has no condition Ready")
    elif ready.get("status") != "True":
        problems.append(f"Ready is {ready.get('status')}: {ready.get('message', 'no message')[:200]}")
    for kind in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        if conditions.get(kind, {}).get("status") != "False":
            problems.append(f"{kind} is {conditions.get(kind, {}).get('status', 'missing')}")
    return problems


def taints(node: Mapping[str, Any]) -> frozenset[str]:
    """`key=value:effect`, without what the control plane sets while a node is cordoned or not ready."""
    found = set()
    for one in node.get("spec", {}).get("taints", []):
        value = f"={one['value']}" if one.get("value") else ""
        found.add(f"{one.get('key')}{value}:{one.get('effect')}")
    passing = {text for text in found if text.startswith("node.kubernetes.io/")}
    return frozenset(found - passing)


def differing(wanted: Mapping[str, Any], found: Mapping[str, Any], below: str = "") -> list[str]:
    """Declared fields that a running configuration has otherwise; what is not declared is left to its defaults."""
    wrong = []
    for key, value in wanted.items():
        if key in ("apiVersion", "kind"):
            continue
        there = found.get(key)
        if isinstance(value, Mapping):
            wrong += differing(value, there if isinstance(there, Mapping) else {}, f"{below}{key}.")
        elif there != value and not (not value and there is None):
            wrong.append(f"{below}{key} {there!r} instead of {value!r}")
    return wrong


def certificate_ends(printed: str) -> list[tuple[str, int]]:
    """Name and end, in seconds since 1970, of each certificate; ValueError for a line that is none."""
    ends = []
    for line in printed.splitlines():
        found = _END.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"not the end of a certificate: {line[:80]!r}")
        moment = datetime.strptime(re.sub(" +", " ", found[2]), "%b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        ends.append((found[1], int(moment.timestamp())))
    return ends


def troubled(pods: Iterable[Mapping[str, Any]], restarts_max: int) -> list[str]:
    """Pods that do not run as they should."""
    wrong = []
    for pod in pods:
        name, status = pod["metadata"]["name"], pod.get("status", {})
        phase = status.get("phase", "without a phase")
        if phase == "Succeeded":
            continue
        statuses = status.get("containerStatuses", [])
        if phase != "Running" or not statuses or not all(one.get("ready") for one in statuses):
            wrong.append(f"{name} is {phase}{'' if phase != 'Running' else ', not ready'}")
        elif max(one.get("restartCount", 0) for one in statuses) > restarts_max:
            wrong.append(f"{name} was restarted {max(one['restartCount'] for one in statuses)} times")
    return wrong
