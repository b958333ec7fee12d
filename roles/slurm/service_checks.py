"""What the slurm role claims of the services of its controllers: state, slurmdbd, licences, reservations."""

from __future__ import annotations

import secrets

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.mount_probe import ask
from rackwright.claims.units import runs
from rackwright.facts.slurm import ReservationsFound
from rackwright.model.cluster import Node
from rackwright.roles.slurm import placement, standby, state, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.records import declared_reservations
from rackwright.workload.slurm.output import parse_config, parse_fields
from rackwright.workload.slurm.reservations import Found, past, scontrol_commands, undeclared

_GUARD = "/etc/systemd/system/slurmctld.service.d/rackwright.conf"
_FINDMNT = "findmnt -n -r -o TARGET,FSTYPE,SOURCE --target %s"
# As user slurm: the server may squash root. A node may keep a folder's old list for up to a minute (nfs(5)).
_WRITE = 'runuser -u slurm -- sh -c \'printf %%s "$1" >"$2"\' token %s %s'
_READ = """runuser -u slurm -- sh -c '
for try in $(seq 35); do cat \"$1\" 2>/dev/null && exit 0; sleep 2; done; exit 3' token %s"""
_REMOVE = "runuser -u slurm -- rm -f %s"


def _state_mounted(context: CheckContext[SlurmOptions]) -> str:
    options, mount = context.options, context.options.state_mount
    declared = state.state_on(context.node, options)
    if declared is not None:
        return _declared_state(context, declared)
    if mount is None:
        raise Undetermined("state_mount is not declared")
    result = context.host.run(_FINDMNT, options.state_dir)
    if result.rc == 1 and not result.stdout.strip() and not result.stderr.strip():
        fail(f"{options.state_dir} does not exist, so slurmctld has no state there")
    if result.rc != 0 or len(result.stdout.split()) < 3:
        raise Undetermined(f"`findmnt` exited {result.rc}: {result.stderr.strip() or 'no output'}")
    target, fstype, source = result.stdout.split()[:3]
    if target != mount.path:
        fail(f"{options.state_dir} is on {target} ({fstype} {source}): {mount.path} is not mounted")
    if (fstype, source) != (mount.fstype, mount.source):
        fail(f"{mount.path} is {fstype} {source}, not {mount.fstype} {mount.source}")
    as_rendered(context, {_GUARD: texts.state_mount_conf(mount)})
    return f"{options.state_dir} is on {mount.fstype} {mount.source}, and slurmctld does not start without it"


def _declared_state(context: CheckContext[SlurmOptions], declared: state.State) -> str:
    """Probed in a separate process, so that a filesystem that hangs is UNKNOWN within its deadline."""
    one = declared.filesystem
    if declared.mount is not None:
        answer = ask(context, (one,))[one.path]
        if answer.hangs:
            raise Undetermined(f"{one.path} does not answer within {one.stat_seconds:g} s")
        if answer.error:
            fail(f"{one.path} cannot be read: {answer.error} ({answer.text})")
    result = context.host.run("sh -c %s", state.program(declared))
    printed = result.stdout.strip()
    if result.rc == 1 and printed:
        fail(f"{printed}: slurmctld's state is not on {one.name}")
    if result.rc != 0 or printed != state.AS_DECLARED:
        raise Undetermined(
            f"what is mounted on {one.path} cannot be read: {result.stderr.strip() or printed}"
        )
    as_rendered(context, state.files(declared), {state.PROGRAM: "755"})
    return f"{context.options.state_dir} is on {one.name}, and slurmctld does not start without it"


def _token() -> str:
    return secrets.token_hex(8)


def _state_shared(context: CheckContext[SlurmOptions]) -> str:
    """Each controller writes a file, and all others read it."""
    nodes = placement.controllers(context.cluster, context.options)
    run = _token()
    paths = {node.name: f"{context.options.state_dir}/.rackwright-{run}-{node.name}" for node in nodes}
    try:
        for name, path in paths.items():
            context.output(_WRITE, f"{run} {name}", path, host=context.on(name))
        blind = [
            one for found in each(lambda node: _unseen(context, node, paths, run), nodes) for one in found
        ]
    finally:
        for name, path in paths.items():
            context.on(name).run(_REMOVE, path)
    if blind:
        fail("; ".join(blind))
    return f"{', '.join(paths)} see what the others write to {context.options.state_dir}"


def _unseen(context: CheckContext[SlurmOptions], reader: Node, paths: dict[str, str], run: str) -> list[str]:
    wrong = []
    for writer, path in paths.items():
        result = context.on(reader.name).run(_READ, path)
        if result.rc not in (0, 3):
            raise Undetermined(f"cannot read {path} on {reader.name}: {result.stderr.strip() or result.rc}")
        if result.rc == 3 or result.stdout.strip() != f"{run} {writer}":
            wrong.append(f"{reader.name} does not see what {writer} writes: their state folders differ")
    return wrong


def _takes_over_again(context: CheckContext[SlurmOptions]) -> str:
    """By configuration: the next takeover shows the rest."""
    as_rendered(context, standby.files(context.node, context.options), dict.fromkeys(standby.PROGRAMS, "755"))
    runs(context, standby.PATH_UNIT)
    return "slurmctld is restarted once it lost the cluster's ID, so it can take over without slurmdbd"


def _archive(context: CheckContext[SlurmOptions]) -> str:
    """The running slurmdbd archives what it purges, and can write there."""
    wanted = context.options.accounting.archived
    running = parse_config(context.output("timeout 20 sacctmgr -n show configuration"))
    if "ArchiveDir" not in running:
        raise Undetermined("`sacctmgr show configuration` does not mention ArchiveDir")
    wrong = [
        f"{key} of the running slurmdbd is {running.get(key, 'missing')}, not {value}"
        for key, value in wanted.items()
        if running.get(key, "").lower() != value.lower()
    ]
    if wrong:
        fail("; ".join(wrong))
    path = wanted["ArchiveDir"]
    result = context.host.run("runuser -u slurm -- test -d %s -a -w %s", path, path)
    if result.rc not in (0, 1):
        raise Undetermined(f"cannot run a command as user slurm: {result.stderr.strip()}")
    if result.rc == 1:
        fail(f"user slurm cannot write {path}, so slurmdbd purges nothing")
    return f"{', '.join(key for key in wanted if key != 'ArchiveDir')}: to {path}"


def _reaches_slurmdbd(context: CheckContext[SlurmOptions]) -> str:
    """`sacctmgr ping` exists from 24.11 on only; a list of clusters needs slurmdbd and its database."""
    host = placement.dbd_host(context.cluster, context.options)
    result = context.host.run("timeout 20 sacctmgr -nP show cluster format=cluster,controlhost")
    printed = (result.stderr.strip() or result.stdout.strip() or "nothing").splitlines()[-1]
    if result.rc in (126, 127):
        raise Undetermined(f"cannot run `sacctmgr`: {printed}")
    if result.rc != 0:
        fail(f"slurmdbd on {host} does not answer: {printed}")
    rows = dict(line.split("|", 1) for line in result.stdout.splitlines() if "|" in line)
    if not rows:
        raise Undetermined("`sacctmgr show cluster` prints no cluster")
    if context.cluster.name not in rows:
        fail(f"slurmdbd on {host} does not know the cluster {context.cluster.name}, only {', '.join(rows)}")
    return f"slurmdbd on {host} answers {context.node.name}"


def _licenses(context: CheckContext[SlurmOptions]) -> str:
    output = context.output("timeout 30 scontrol show licenses -o")
    rows = {row["LicenseName"]: row for row in parse_fields(output) if "LicenseName" in row}
    if not rows and "No licenses" not in output:
        raise Undetermined("`scontrol show licenses` prints no licence")
    wrong = []
    for name, count in context.options.licenses.items():
        there = rows.get(name)
        if there is None:
            wrong.append(f"licence {name} is missing")
        elif there.get("Total") != str(count):
            wrong.append(f"slurmctld has {there.get('Total')} of licence {name}, not {count}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(f"{count} {name}" for name, count in context.options.licenses.items())


def _reservations(context: CheckContext[SlurmOptions]) -> str:
    found = context.fact(ReservationsFound)
    if not isinstance(found, Found):
        raise Undetermined(f"slurmctld is {found or 'missing'} and could not be asked for reservations")
    declared = declared_reservations(context.cluster, context.options)
    to_do = scontrol_commands(found, declared, prune=context.options.prune)
    if to_do:
        fail(
            "; ".join(f"{one.target}: {one.before or 'missing'}, not {one.after or 'there'}" for one in to_do)
        )
    over, others = past(declared, found.now), undeclared(found, declared)
    if over:
        raise Warned(f"{', '.join(over)} is over: remove it from the cluster file")
    named = f"; not declared: {', '.join(others)}" if others else ""
    return f"{', '.join(declared) or 'none'} as declared{named}"


def _with_state_mount(node: Node, options: SlurmOptions) -> bool:
    if not placement.runs_slurmctld(node, options):
        return False
    return options.state_mount is not None or state.state_on(node, options) is not None


def _with_backups(node: Node, options: SlurmOptions) -> bool:
    return node.primary and bool(options.backups)


def _with_archive(node: Node, options: SlurmOptions) -> bool:
    return placement.runs_slurmdbd(node, options) and bool(options.accounting.archived)


def _with_licenses(node: Node, options: SlurmOptions) -> bool:
    return node.primary and bool(options.licenses)


def _with_reservations(node: Node, options: SlurmOptions) -> bool:
    return node.primary and placement.reservations_due(options)


NODE_CHECKS = (
    Check("slurmctld's state is on its declared filesystem", _state_mounted, applies=_with_state_mount),
    Check(
        "slurmdbd answers this controller",
        _reaches_slurmdbd,
        settle_seconds=15,
        applies=placement.runs_slurmctld,
    ),
    Check("a standby slurmctld can take over more than once", _takes_over_again, applies=standby.loses_id),
    Check("purged accounting records are archived", _archive, settle_seconds=15, applies=_with_archive),
)
CLUSTER_CHECKS = (
    Check(
        "controllers share slurmctld's state",
        _state_shared,
        scope="cluster",
        timeout_seconds=240,
        applies=_with_backups,
        live=True,
    ),
    Check("licences are as declared", _licenses, scope="cluster", settle_seconds=10, applies=_with_licenses),
    Check(
        "reservations are as declared",
        _reservations,
        scope="cluster",
        settle_seconds=10,
        applies=_with_reservations,
    ),
)
