"""Services: those that are declared, and those that must not run."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.checks import scope
from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.history import DAY, name, rising
from rackwright.health.node_records import Unit
from rackwright.health.records import Unreadable
from rackwright.health.registry import check, each
from rackwright.health.verdict import Action, Finding, fail, good, unknown

PERSISTENCE = "nvidia-persistenced.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
IMEX = "nvidia-imex.service"
SLURMD = "slurmd.service"
SUBNET_MANAGER = "opensm.service"
OURS = (PERSISTENCE, FABRIC_MANAGER, IMEX, SLURMD)
"""Units that have a separate check."""
PASSING = ("activating", "deactivating")
"""A unit passes through these states while it restarts."""


def asked_for(expected: Expected) -> list[str]:
    """The units that the probe must report."""
    found = {*expected.services, SUBNET_MANAGER}
    found |= {PERSISTENCE} if scope.gpus(expected) else set()
    found |= {FABRIC_MANAGER} if scope.fabricmanager(expected) else set()
    found |= {IMEX} if scope.imex(expected) else set()
    found |= {SLURMD} if expected.slurmd else set()
    return sorted(found)


def unit(document: Document, name: str) -> Unit:
    for one in document.services.units:
        if one.name == name:
            return one
    raise Unreadable(f"the probe did not query {name}")


def must_run(document: Document, name: str) -> Iterator[Finding]:
    one = unit(document, name)
    if one.loaded == "not-found":
        yield fail(f"{name} is not installed")
    elif one.active in PASSING:
        yield unknown(f"{name} is {one.active}")
    elif one.active not in ("active", "reloading"):
        yield fail(f"{name} is {one.active}")
    yield good("active")


def some_services(expected: Expected) -> bool:
    return bool(expected.services)


@check(
    "services", "Every declared service runs", reads=("services",), applies=some_services,
    remedy="Run systemctl status and journalctl -u for the reason.", source="the cluster file and the site's options",
)  # fmt: skip
def services_active(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(name: str) -> Finding | None:
        one = unit(document, name)
        if one.active in ("active", "reloading"):
            return None
        evidence = f"{name} is {one.active}"
        return unknown(evidence) if one.active in PASSING else fail(evidence)

    yield from each(expected.services, judge, f"{len(expected.services)} services")


@check(
    "services", "Every declared service starts at boot", reads=("services",), applies=some_services, action=Action.NONE,
    remedy="Run systemctl enable.", source="PEERS pains: services dead after a reboot",
)  # fmt: skip
def services_enabled(expected: Expected, document: Document) -> Iterator[Finding]:
    def judge(name: str) -> Finding | None:
        enabled = unit(document, name).enabled
        return (
            fail(f"{name} is {enabled or 'not installed'}") if enabled in ("disabled", "masked", "") else None
        )

    yield from each(expected.services, judge, "all")


@check(
    "services", "No service keeps restarting", reads=("services", "history"), action=Action.NONE, limits=("service_restarts",), applies=some_services,
    remedy="Run journalctl -u to see why it stops.", source="systemd NRestarts",
)  # fmt: skip
def services_steady(expected: Expected, document: Document) -> Iterator[Finding]:
    most = expected.limit("service_restarts")

    def judge(service: str) -> Finding | None:
        times, key = unit(document, service).restarts, name("unit", service, "restarts")
        return rising(document, f"{service}: restarts", key, times, most, DAY)

    yield from each(expected.services, judge, "steady")


@check(
    "services", "No unit has failed", reads=("services",), action=Action.NONE,
    remedy="Run systemctl status; once the cause is fixed, systemctl reset-failed.", source="StackHPC alert: systemd unit failed",
)  # fmt: skip
def services_failed(expected: Expected, document: Document) -> Iterator[Finding]:
    failed = document.services.failed
    if failed:
        yield fail(" ".join(failed[:12]))
    yield good("none")


@check(
    "services", "nvidia-persistenced runs", reads=("services",), needs=("kernel-modules",), applies=scope.gpus,
    action=Action.NONE, remedy="Run systemctl enable --now nvidia-persistenced.", source="NVIDIA driver persistence; Azure images",
)  # fmt: skip
def persistenced_active(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from must_run(document, PERSISTENCE)


@check(
    "services", "fabricmanager runs", reads=("services",), needs=("kernel-modules",), applies=scope.fabricmanager,
    remedy="Run journalctl -u nvidia-fabricmanager; its version must match the driver's.",
    source="NVIDIA fabric manager user guide; gpud fabric-manager",
)  # fmt: skip
def fabricmanager_active(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from must_run(document, FABRIC_MANAGER)


@check(
    "services", "IMEX runs", reads=("services",), needs=("kernel-modules",), applies=scope.imex, action=Action.NONE,
    remedy="/etc/nvidia-imex/nodes_config.cfg must name every node of the NVLink domain.",
    source="NVIDIA IMEX guide; ai-infrastructure-on-azure",
)  # fmt: skip
def imex_active(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from must_run(document, IMEX)


def runs_slurmd(expected: Expected) -> bool:
    return expected.slurmd


@check(
    "services", "slurmd runs", reads=("services",), applies=runs_slurmd,
    remedy="Run journalctl -u slurmd, and compare `slurmd -C` with slurm.conf.", source="the cluster file",
)  # fmt: skip
def slurmd_active(expected: Expected, document: Document) -> Iterator[Finding]:
    yield from must_run(document, SLURMD)


def slurmd_and_rdma(expected: Expected) -> bool:
    return expected.slurmd and scope.rdma(expected)


@check(
    "services", "Jobs may lock memory for RDMA", reads=("services",), applies=slurmd_and_rdma, action=Action.NONE,
    remedy="Set LimitMEMLOCK=infinity in slurmd.service and restart slurmd.", source="Slurm's own slurmd.service; OCI limits",
)  # fmt: skip
def slurmd_memlock(expected: Expected, document: Document) -> Iterator[Finding]:
    found = unit(document, SLURMD).memlock
    if found not in ("infinity", "18446744073709551615"):
        yield fail(f"LimitMEMLOCK of slurmd is {found}")
    yield good("unlimited")


def no_subnet_manager(expected: Expected) -> bool:
    return scope.infiniband(expected) and not expected.runs_subnet_manager


@check(
    "services", "No subnet manager runs on this node", reads=("services",), applies=no_subnet_manager, action=Action.NONE,
    remedy="Run systemctl disable --now opensm: a compute node must not manage the fabric.", source="ClusterMAX security",
)  # fmt: skip
def opensm_absent(expected: Expected, document: Document) -> Iterator[Finding]:
    one = unit(document, SUBNET_MANAGER)
    if one.active not in ("inactive", "failed"):
        yield fail(f"opensm is {one.active}")
    yield good("none")
