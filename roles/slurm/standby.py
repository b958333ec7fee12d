"""A slurmctld that gave control back is restarted, since it could not take over a second time without slurmdbd.

`slurm_conf.cluster_id` is read from `clustername` in main() alone, and slurm_conf_reinit() clears it; then a takeover
without slurmdbd retries for good, "Still don't know my ClusterID" (src/slurmctld/controller.c and
src/common/read_config.c of 24.11 to 25.11, read 2026-11-26; seen with 24.11.5).
"""

from __future__ import annotations

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.roles.slurm import placement
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.sections import STANDBY_UNIT_FILES

ON_STANDBY = "/usr/libexec/rackwright/slurmctld-standby"
ON_PRIMARY = "/usr/libexec/rackwright/slurmctld-primary"
PROGRAMS = (ON_PRIMARY, ON_STANDBY)
CONF, PATH_FILE, SERVICE_FILE = STANDBY_UNIT_FILES
PATH_UNIT = PATH_FILE.rpartition("/")[2]
_RUN = "/run/slurmctld"
"""RuntimeDirectory= of the packages' unit: systemd removes it, with what is in it, when slurmctld stops."""


def due(node: Node, options: SlurmOptions) -> bool:
    """Whether a node is a controller of a pair, of a release that asks for the ID."""
    paired = bool(options.backups) and placement.runs_slurmctld(node, options)
    return paired and placement.release_on(node, options) >= (24, 11)


def loses_id(node: Node, options: SlurmOptions) -> bool:
    """Whether its slurmctld goes on standby, and loses the ID when it reads slurm.conf again."""
    return node.name in options.backups and due(node, options)


def files(node: Node, options: SlurmOptions) -> dict[str, str | None]:
    """Programs of a controller, and the units of a backup, by path; None for what a head does not have."""
    texts = {ON_STANDBY: "standby.sh", ON_PRIMARY: "primary.sh"} if due(node, options) else {}
    if loses_id(node, options):
        texts |= {CONF: "standby.conf", PATH_FILE: "standby.path", SERVICE_FILE: "standby.service"}
    found: dict[str, str | None] = dict.fromkeys((*PROGRAMS, *STANDBY_UNIT_FILES))
    for path, template in texts.items():
        found[path] = render(
            f"slurm/{template}.j2",
            role=f"{_RUN}/role",
            mark=f"{_RUN}/restart-wanted",
            path_file=PATH_FILE,
            path_unit=PATH_UNIT,
            clustername=f"{options.state_dir}/clustername",
        )
    return found
