"""The files of the health role, whole. Pure: what is applied is what is verified."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache

from rackwright.health.declare import expected_of
from rackwright.health.guard import places
from rackwright.health.guard.main import REFUSED
from rackwright.model.cluster import Cluster, Node
from rackwright.model.platforms import Capability, has
from rackwright.node_programs import HEALTH_CHECK, package_files
from rackwright.render import render
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.workload.health_timer import SERVICE, TIMER
from rackwright.workload.lookup import declared_on, runs_jobs

STAGES = ("prolog", "epilog")
FOLDERS = {
    places.FOLDER: "755",
    places.DISABLED: "755",
    places.STATE: "700",  # lines of the kernel's log, which dmesg_restrict keeps from users
    places.METRICS_FOLDER: "755",
    places.PROGRAM.rpartition("/")[0]: "755",
    places.MODULES: "755",
}
"""Mode by path; root owns them all."""
BMC_MODPROBE = "/etc/modprobe.d/rackwright-health.conf"
BMC_DEVICE = "{ test -e /sys/module/ipmi_devintf || ! modinfo ipmi_devintf >/dev/null 2>&1; } && echo there"
"""The module that creates /dev/ipmi0 is loaded, or the kernel lacks it."""
LOAD_BMC_DEVICE = "modprobe ipmi_devintf"
_UNITS = "/etc/systemd/system"
TIMER_FILES = (f"{_UNITS}/{SERVICE}", f"{_UNITS}/{TIMER}")
"""Where the workload manager has no program for health checks."""


@cache
def modules() -> dict[str, str]:
    """Text of each module of the program, by its path below `modules_folder()`."""
    return package_files(HEALTH_CHECK)


@cache
def modules_folder() -> str:
    """Named by what is in it, so that a pass which runs during an apply loads modules of one version only."""
    digest = hashlib.sha256(json.dumps(modules(), sort_keys=True).encode()).hexdigest()
    return f"{places.MODULES}/{digest[:16]}"


def program() -> str:
    """What Slurm or the node's timer starts."""
    return render("health/health-check.py.j2", modules=modules_folder())


def expected(cluster: Cluster, node: Node) -> str:
    """The declaration of this node."""
    return json.dumps(expected_of(cluster, node).to_json(), indent=1, sort_keys=True) + "\n"


def policy(options: HealthRoleOptions) -> str:
    """The site's policy."""
    return json.dumps(asdict(options.policy), indent=1, sort_keys=True) + "\n"


def files_of(cluster: Cluster, node: Node, options: HealthRoleOptions) -> dict[str, tuple[str, str]]:
    """(content, mode) by path, without the program's modules."""
    found = {
        places.PROGRAM: (program(), "755"),
        places.EXPECTED: (expected(cluster, node), "644"),
        places.POLICY: (policy(options), "644"),
    }
    if asks_bmc(node):
        found[BMC_MODPROBE] = (render("health/modprobe.conf.j2"), "644")
    found.update(_timer(node, options))
    for stage in STAGES:
        path = drop_in(node, stage)
        if path is not None and drops_in(node, options, stage):
            found[path] = (
                render("health/drop-in.sh.j2", program=places.PROGRAM, stage=stage, refused=REFUSED),
                "755",
            )
    return found


def runs_by_timer(node: Node) -> bool:
    """Whether the node's own timer runs its health check."""
    manager = declared_on(node)
    return manager is not None and manager.health_timer and runs_jobs(node)


def _timer(node: Node, options: HealthRoleOptions) -> dict[str, tuple[str, str]]:
    manager = declared_on(node)
    if manager is None or not runs_by_timer(node):
        return {}
    service, timer = TIMER_FILES
    agent = f"{manager.agent}.service"
    return {
        service: (render("health/health.service.j2", agent=agent, program=places.PROGRAM), "644"),
        timer: (render("health/health.timer.j2", seconds=options.timer_seconds), "644"),
    }


def asks_bmc(node: Node) -> bool:
    """Whether the probe may find a BMC: on every machine of metal, as some have one without declaring it."""
    return has(node.platform, Capability.HARDWARE)


def drop_in(node: Node, stage: str) -> str | None:
    """In the folder whose scripts the workload manager runs before or after each job; None where it has none."""
    manager = declared_on(node)
    folder = manager.hooks.get(stage) if manager is not None else None
    return f"{folder}/20-rackwright-health" if folder is not None else None


def drops_in(node: Node, options: HealthRoleOptions, stage: str) -> bool:
    """Whether jobs start and end on this node, and the site wants it checked then."""
    return runs_jobs(node) and bool(getattr(options.drain, stage))
