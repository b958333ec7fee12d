"""What several roles of the GPU stack claim of a node: packages as locked, a unit that runs, its GPUs."""

from __future__ import annotations

from typing import Any

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.packages import Packages, PackageState, parse_packages
from rackwright.health.probe.gpus import parse, parse_mig_list
from rackwright.health.probe.source import Unavailable
from rackwright.lock.for_roles import component, group_of
from rackwright.lock.stack_options import StackOptions
from rackwright.model.options import RoleOptions


def as_locked(context: CheckContext[StackOptions]) -> str:
    """The role's parts of the lock are installed at exactly the locked versions, and held."""
    return held_at(context, component(group_of(context.cluster, context.node), *context.options.parts))


def held_at(context: CheckContext[RoleOptions], packages: tuple[str, ...]) -> str:
    """Packages, each `name=version`, are installed at that version and held there."""
    wanted = dict(sorted(package.split("=", 1) for package in packages))
    if not wanted:
        raise Undetermined("no package is declared for this node")
    state = package_state(context, tuple(wanted))
    wrong = []
    for name, version in wanted.items():
        there = state.installed.get(name)
        if there is None:
            wrong.append(f"{name} is not installed" + (" whole" if name in state.broken else ""))
        elif version not in (there, there.partition(":")[2]):
            wrong.append(f"{name} is {there}, not {version}")
        elif name not in state.held:
            wrong.append(f"{name} is not held")
    if wrong:
        fail("; ".join(wrong))
    name, version = next(iter(wanted.items()))
    more = f" and {len(wanted) - 1} more" if len(wanted) > 1 else ""
    return f"{name} {version}{more}, held"


def package_state(context: CheckContext[RoleOptions], names: tuple[str, ...]) -> PackageState:
    """What is installed and held; Undetermined when the package tool says nothing of any of them."""
    tool = {"debian": "dpkg-query", "el": "rpm"}[context.node.family.value]
    context.output("command -v %s", tool)
    question = Packages().command(context.node.family.value, names)
    return parse_packages(context.output("sh -c %s", question.get_raw_value()).splitlines())


def runs(context: CheckContext[RoleOptions], unit: str) -> str:
    """A unit is active, and starts at boot."""
    said = context.host.run("systemctl show -p ActiveState,UnitFileState %s", unit).stdout
    values = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    if not values.get("ActiveState"):
        raise Undetermined(f"systemctl does not say whether {unit} runs")
    if values["ActiveState"] != "active":
        fail(f"{unit} is {values['ActiveState']}")
    if values.get("UnitFileState") not in ("enabled", "static"):
        fail(
            f"{unit} is active, and {values.get('UnitFileState') or 'not enabled'}: it does not start at boot"
        )
    return f"{unit} is active and enabled"


def smi(context: CheckContext[RoleOptions]) -> dict[str, Any]:
    """nvidia-smi's document as the health probe reads it; MIG profiles of GPUs that are cut included."""
    try:
        found = parse(context.output("timeout 30 nvidia-smi -q -x"))
    except Unavailable as error:
        raise Undetermined(str(error)) from None
    if any(gpu["mig"]["current"] for gpu in found["gpus"]):
        profiles = parse_mig_list(context.output("timeout 30 nvidia-smi -L"))
        for gpu in found["gpus"]:
            gpu["mig"]["profiles"] = profiles.get(gpu["uuid"], [])
    return found


def loaded_driver(context: CheckContext[RoleOptions]) -> str:
    """Version of the driver that nvidia-smi talks to."""
    version = smi(context)["driver_version"]
    if not isinstance(version, str):
        raise Undetermined("nvidia-smi names no driver version")
    return version


def declared_gpus(context: CheckContext[RoleOptions]) -> int:
    """How many GPUs the node is declared to have."""
    gpus = context.node.sku.gpus
    if gpus is None:
        raise Undetermined(f"{context.node.sku.name} has no GPUs")
    return gpus.count
