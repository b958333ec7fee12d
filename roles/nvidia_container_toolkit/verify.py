"""Checks of the nvidia_container_toolkit role."""

from __future__ import annotations

import re

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, listed_gpus
from rackwright.facts.settings import Answer
from rackwright.lock.for_roles import group_of
from rackwright.lock.versions import upstream
from rackwright.model.cluster import Node
from rackwright.roles.nvidia_container_toolkit.options import CONFIG, MODE_READ, NvidiaContainerToolkitOptions


def devices(node: Node, gpus: int) -> set[str]:
    """Names the spec has to have: each GPU's number, or number and instance where MIG partitions it; and `all`."""
    each = sum(node.mig.values())
    numbers = (
        {f"{gpu}:{one}" for gpu in range(gpus) for one in range(each)} if each else set(map(str, range(gpus)))
    )
    return {*numbers, "all"}


def listed(text: str, wanted: set[str]) -> str:
    """`nvidia-ctk cdi list` prints `nvidia.com/gpu=0` and the like, by number and by UUID."""
    there = set(re.findall(r"^nvidia\.com/gpu=(\S+)$", text, re.MULTILINE))
    if not there and "Found 0 CDI devices" not in text:
        raise Undetermined(f"nvidia-ctk reports neither devices nor their absence: {text.strip()[:80]!r}")
    missing = sorted(wanted - there)
    if missing:
        fail(
            f"the CDI spec lacks nvidia.com/gpu={', '.join(missing[:5])}: restart nvidia-cdi-refresh.service"
        )
    partitioned = any(":" in name for name in wanted)
    strange = sorted(
        name for name in there - wanted if re.fullmatch(r"\d+:\d+" if partitioned else r"\d+(:\d+)?", name)
    )
    if strange:
        fail(f"the CDI spec has nvidia.com/gpu={', '.join(strange[:5])}, which is not declared")
    return f"{len(wanted) - 1} devices, and all of them as one"


def _devices(context: CheckContext[NvidiaContainerToolkitOptions]) -> str:
    result = context.host.run("timeout 30 nvidia-ctk cdi list")
    if result.rc != 0:
        raise Undetermined(
            f"nvidia-ctk cdi list exited {result.rc}: {result.stderr.strip()[-120:] or 'nothing'}"
        )
    # the count is written to the log, the names to the output
    return listed(result.stdout + result.stderr, devices(context.node, listed_gpus(context)))


def _version(context: CheckContext[NvidiaContainerToolkitOptions]) -> str:
    locked = upstream(group_of(context.cluster, context.node).packages["nvidia-container-toolkit"])
    output = context.output("nvidia-ctk --version")
    found = re.search(r"version ([0-9.]+)", output)
    if found is None:
        raise Undetermined(f"nvidia-ctk reports no version: {output.strip()[:80]!r}")
    if found[1] != locked:
        fail(f"nvidia-ctk is {found[1]}, not the locked {locked}")
    return found[1]


def _mode(context: CheckContext[NvidiaContainerToolkitOptions]) -> str:
    mode = context.fact(Answer, MODE_READ, may_be_empty=True)
    if mode is None:
        raise Undetermined(f"{CONFIG} has no mode of nvidia-container-runtime")
    if mode != context.options.mode:
        fail(f"nvidia-container-runtime gives devices by {mode}, not {context.options.mode}")
    return mode


CHECKS = (
    Check("the container toolkit is installed as locked and held", as_locked),
    Check("nvidia-ctk has the locked version", _version),
    Check("the runtime has the declared device mode", _mode),
    Check("the CDI spec lists the declared GPUs", _devices, settle_seconds=15),
)
