"""Applies the slurm role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.api.exceptions import DeployError
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.extra_lines import named
from rackwright.model.cluster import Node
from rackwright.model.types import NodeRole
from rackwright.operations import files, packages, settings, units, users
from rackwright.operations.file_sets import file_set
from rackwright.operations.slurm_accounting import entities
from rackwright.operations.slurm_reservations import reservations
from rackwright.osfamily.names import names
from rackwright.roles.slurm import layout, placement, questions, standby, state, texts
from rackwright.roles.slurm.gres_lines import SIMULATED_GPUS
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.records import declared_records, declared_reservations

ETC = "/etc/slurm"
RESTART = (f"{ETC}/slurm-restart.conf", f"{ETC}/job_container.conf")
RELOAD = tuple(
    f"{ETC}/{name}"
    for name in ("slurm.conf", "topology.conf", "gres.conf", "cgroup.conf", "mpi.conf", "plugstack.conf")
)
# Clients stop working on a slurm.conf they cannot read, and daemons do not start again: what
# Slurm's own parser refuses does not land. Before Slurm is installed there is no parser to ask.
PARSES = (
    "if command -v scontrol >/dev/null && SLURM_CONF=%s timeout 20 scontrol ping 2>&1 "
    "| grep -E 'Pars(e|ing) error|Unable to process configuration' >&2; then exit 1; fi"
)


@deploy("slurm")
def slurm(options: SlurmOptions) -> None:
    """Configuration first, then the packages, then the daemons from the database upwards."""
    site = site_of()
    if options.in_pods:
        _stop_daemons()
        return
    _ground(options)
    file_set(texts.shared_files(site.cluster, options), validated={f"{ETC}/slurm.conf": PARSES}, there=(ETC,))
    stages = ("prolog", "epilog", *(("task_prolog",) if placement.sets_environment(site.cluster) else ()))
    for stage in host.loop(stages):  # type: ignore[no-untyped-call]
        _scripts(site, options, stage)
    _install(site, options)
    if placement.daemons(site.cluster, site.node, options):
        timer = names(site.node.family, "logrotate").unit or ""
        units.unit(name="Rotate logs every day", unit=timer)
    if placement.runs_slurmdbd(site.node, options):
        _slurmdbd(site, options)
    elif site.node.holds(NodeRole.HEAD):
        # declared on another head now: a second one would sum up usage twice
        units.unit(name="Stop slurmdbd", unit="slurmdbd.service", running=False, enabled=False)
    if placement.declares_records(site.cluster, site.node, options):
        _records(site, options)
    if placement.runs_slurmctld(site.node, options):
        _slurmctld(site, options)
    elif site.node.holds(NodeRole.HEAD):
        units.unit(name="Stop slurmctld", unit="slurmctld.service", running=False, enabled=False)
        _standby(site.node, options)
    if site.node.primary:  # on slurmctld's node, which need not be slurmdbd's
        _entities(site, options, "Update the limits on resources that slurmctld counts", counted=True)
    if placement.runs_slurmd(site.node):
        _slurmd(site, options)
    if placement.adopts_logins(site.node, options):
        _adopt_logins(site, options)


def _ground(options: SlurmOptions) -> None:
    users.group(name="Create group slurm", group="slurm", gid=options.gid)
    users.user(
        name="Create user slurm",
        user="slurm",
        uid=options.uid,
        group="slurm",
        shell="/usr/sbin/nologin",
        home="/nonexistent",
        system=True,
        create_home=False,
    )
    files.directory(name="Create Slurm's folder", path=ETC)
    files.directory(name="Create the folder for SPANK plugins", path=f"{ETC}/plugstack.conf.d")
    files.directory(name="Create Slurm's log folder", path="/var/log/slurm", owner="slurm", group="slurm")


def _stop_daemons() -> None:
    """Daemons that ran on the primary head before: two slurmctld would both act on the same nodes."""
    for daemon in host.loop(("slurmctld", "slurmdbd", "slurmd")):  # type: ignore[no-untyped-call]
        units.unit(
            name=f"Stop {daemon}, which runs in a pod", unit=f"{daemon}.service", running=False, enabled=False
        )


@deploy("slurm")
def leaves(options: SlurmOptions) -> None:
    """A node whose workload is another one now runs no slurmd; slurm.conf on the others does not name it any more."""
    units.unit(
        name="Stop slurmd, which has no node here", unit="slurmd.service", running=False, enabled=False
    )


def _scripts(site: Site, options: SlurmOptions, stage: str) -> None:
    files.directory(name=f"Create the folder for {stage} scripts", path=f"{ETC}/{stage}.d")
    files.file(
        name=f"Write the runner of {stage} scripts",
        path=f"{ETC}/{stage}.sh",
        content=texts.script_runner(site.cluster, options, stage),
        mode="755",
        validate="sh -n %s",
    )


def _install(site: Site, options: SlurmOptions) -> None:
    wanted = placement.software(site.cluster, site.node, options)
    versioned = f"={options.packages.version}" if options.packages.version else ""
    prefix = "schedmd/" if options.packages.source == "schedmd" else ""
    slurms = [name for part in wanted.slurm for name in names(site.node.family, prefix + part).packages]
    others = [name for part in wanted.other for name in names(site.node.family, part).packages]
    packages.installed(
        name="Install Slurm",
        packages=tuple(dict.fromkeys([*(f"{name}{versioned}" for name in slurms), *others])),
        start_daemons=False,  # in their own order, below
    )


def _slurmdbd(site: Site, options: SlurmOptions) -> None:
    conf = f"{ETC}/slurmdbd.conf"
    password = site.secret(options.accounting.storage_password).reveal()
    if "#" in password or password != password.strip():  # slurmdbd.conf(5): the rest would be a comment
        raise DeployError(
            f"the secret {options.accounting.storage_password} contains `#` or begins or ends with a blank"
        )
    if (archive := options.accounting.archived.get("ArchiveDir")) is not None:
        files.directory(
            name="Create the folder for archived accounting records",
            path=archive,
            mode="700",
            owner="slurm",
            group="slurm",
        )
    content = texts.slurmdbd_conf(site.cluster, options, password)
    files.file(
        name=named("Write slurmdbd.conf", content),
        path=conf,
        content=content,
        mode="600",
        owner="slurm",
        group="slurm",
        sensitive=True,
    )
    _rotate(site, options, "slurmdbd")
    units.unit(name="Start slurmdbd with its settings", unit="slurmdbd.service", restart_on=(conf,))


def _records(site: Site, options: SlurmOptions) -> None:
    # Before slurmctld: it refuses a partition with an unknown QOS.
    _entities(site, options, "Update accounts, users and QOS", counted=False)


def _entities(site: Site, options: SlurmOptions, name: str, *, counted: bool) -> None:
    """Twice: slurmdbd takes no limit on a TRES such as gres/gpu before a slurmctld has named it."""
    entities(
        name=name,
        cluster=site.cluster.name,
        declared=declared_records(site.cluster, options),
        prune=options.prune,
        counted=counted,
        local=placement.runs_slurmdbd(site.node, options),
    )


def _slurmctld(site: Site, options: SlurmOptions) -> None:
    _state(site.node, options)
    if not placement.declares_records(site.cluster, site.node, options):
        known = questions.known_records(site.cluster, options)
        settings.setting(
            name="Wait for slurmdbd",
            target=f"slurmdbd on {placement.dbd_host(site.cluster, options)}",
            read=known,
            want=questions.KNOWN,
            write=questions.wait_for(known, placement.dbd_host(site.cluster, options)),
        )
    files.directory(
        name="Create slurmctld's state folder",
        path=options.state_dir,
        mode="700",
        owner="slurm",
        group="slurm",
    )
    _standby(site.node, options)
    _daemon(site, options, "slurmctld")
    if site.node.primary and placement.reservations_due(options):
        reservations(
            name="Update reservations",
            declared=declared_reservations(site.cluster, options),
            prune=options.prune,
        )


def _state(node: Node, options: SlurmOptions) -> None:
    """The guard before the daemon, and no folder of the same name on the disk of the node."""
    declared, mount = state.state_on(node, options), options.state_mount
    if declared is not None:
        file_set(state.files(declared), (state.PROGRAM,))
    else:
        conf = texts.state_mount_conf(mount) if mount is not None else None
        file_set({state.PROGRAM: None, state.WAITER_PATH: None, state.CONF: conf})
    if declared is not None and declared.units:
        settings.setting(
            name="Check that slurmctld's state is on its filesystem",
            target=f"filesystem of slurmctld's state ({declared.filesystem.name})",
            read=state.program(declared),
            want=state.AS_DECLARED,
            write=state.refuse(declared),
        )
    elif declared is None and mount is not None:
        settings.setting(
            name="Check that slurmctld's state is on its filesystem",
            target=f"mount of {mount.path}",
            read=questions.mounted(mount),
            want=f"{mount.fstype} {mount.source}",
            write=questions.refuse_unmounted(mount),
        )


def _standby(node: Node, options: SlurmOptions) -> None:
    """slurm.conf names the programs on all controllers; a backup restarts its slurmctld where they ask for it."""
    loses_id, unit = standby.loses_id(node, options), standby.PATH_UNIT
    if not loses_id:  # a single controller, or no backup any more
        units.unit(name="Stop restarting a standby slurmctld", unit=unit, running=False, enabled=False)
    file_set(standby.files(node, options), standby.PROGRAMS)
    if loses_id:
        units.unit(name="Restart a standby slurmctld that lost the cluster's ID", unit=unit)


def _slurmd(site: Site, options: SlurmOptions) -> None:
    files.directory(name="Create slurmd's spool folder", path=options.spool_dir)
    files.file(
        name="Clear PMIx's folders at boot",
        path="/etc/tmpfiles.d/rackwright-slurmd.conf",
        content=texts.slurmd_tmpfiles(options),
    )
    gpus = layout.simulated_gpus(site.node)
    if gpus:
        conf = "/etc/tmpfiles.d/rackwright-gpus.conf"
        files.file(name="Write the simulated GPUs", path=conf, content=texts.simulated_gpus_conf(gpus))
        settings.setting(
            name="Create simulated GPUs",
            target="simulated GPUs",
            read=f"ls -d {SIMULATED_GPUS}* 2>/dev/null | wc -l",
            want=str(gpus),
            write=f"systemd-tmpfiles --create {conf}",
        )
    _daemon(site, options, "slurmd")


def _daemon(site: Site, options: SlurmOptions, daemon: str) -> None:
    """Reloaded where that is enough, so that jobs and state stay; restarted for what it never reads again."""
    _rotate(site, options, daemon)
    # Before 23.11 a reload leaves nodes, plugins and topology as they were.
    by_reload = placement.release_on(site.node, options) >= (23, 11)
    units.unit(
        name=f"Start {daemon} with its settings",
        unit=f"{daemon}.service",
        restart_on=RESTART if by_reload else (*RESTART, *RELOAD),
        reload_on=RELOAD if by_reload else (),
    )


def _rotate(site: Site, options: SlurmOptions, daemon: str) -> None:
    files.file(
        name=f"Rotate the log of {daemon}",
        path=f"/etc/logrotate.d/{daemon}",
        content=texts.logrotate(site.cluster, options, daemon),
    )


def _adopt_logins(site: Site, options: SlurmOptions) -> None:
    # The exceptions are written before logins are restricted.
    files.file(
        name="Write the list of users who may log in without a job",
        path="/etc/security/access-slurm.conf",
        content=texts.access_conf(site.cluster, options),
    )
    files.file(
        name="Restrict logins to users with a job",
        path="/etc/pam.d/sshd",
        content=texts.sshd_pam(site.node.family),
    )
