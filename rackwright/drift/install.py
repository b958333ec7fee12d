"""Install and uninstall: the declaration, the nodes, and the checker if it is this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from rackwright import __version__
from rackwright.boundary import last_line, printable
from rackwright.drift import paths
from rackwright.drift.baseline import kept_of, take
from rackwright.drift.declaration import Declaration, path_of, read_declaration, write_declaration
from rackwright.drift.here import Here
from rackwright.engine.run import Applied, apply
from rackwright.engine.session import Watcher
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.settings import Waves
from rackwright.plan.node_plan import ApplyResult, PlannedOperation, PlanResult
from rackwright.secrets.store import store_of
from rackwright.ssh import Pool
from rackwright.state_folder import state_folder

INSTALL = Path(__file__).with_name("deploy_install.py")
UNINSTALL = Path(__file__).with_name("deploy_uninstall.py")
ROLES = frozenset({"drift"})
"""Separate from the site's fact cache, which must not learn from our questions."""
_PYTHONS = ("/opt/rackwright/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3")
_PROBE = "import sys, rackwright.drift.check, apprise; print(rackwright.__version__, sys.executable)"

Operations = tuple[PlannedOperation, ...]
Agree = Callable[[PlanResult | None, Operations], bool]
"""(plan of the nodes, changes on this machine) -> whether to continue."""


@dataclass
class Done:
    """The result of an install or uninstall."""

    plan: PlanResult
    result: ApplyResult | None
    here: Operations
    """Changes on this machine."""
    agreed: bool
    without: list[str] = field(default_factory=list)
    """Nodes that were never seen in sync: nothing is expected of them yet."""

    @property
    def exit_code(self) -> ExitCode:
        """CHANGES_PENDING if declined; else ERROR, UNKNOWN or CLEAN."""
        if self.result is not None:
            return self.result.exit_code
        if self.here and not self.agreed:
            return ExitCode.CHANGES_PENDING
        return self.plan.exit_code


def install(
    cluster: Cluster,
    declared: Declaration,
    *,
    urls: Sequence[str] | None = None,
    limit: str | None = None,
    agree: Agree = lambda plan, here: True,
    watch: Watcher | None = None,
) -> Done:
    """Declare it, and apply it to the nodes and the checker.

    `urls` None keeps those of an earlier installation.
    """
    before = read_declaration(cluster.path)
    if urls is None:
        declared = declared.model_copy(update={"notify": before is not None and before.notify})
    else:
        declared = declared.model_copy(update={"notify": bool(urls)})
    if declared.mode == "push":
        store_of(cluster).ensure([paths.KEY_SECRET])
        if urls:
            store_of(cluster).put(paths.NOTIFY_SECRET, json.dumps(list(urls)))
        python = _python_here() if declared.on == "here" else _python_on_head(cluster)
        declared = declared.model_copy(update={"python": python})
    limit = _with_head(cluster, declared, limit)
    known = take(cluster, limit, watch)
    consented = False

    def agreed(plan: PlanResult | None, here: Operations) -> bool:
        nonlocal consented
        consented = consented or agree(plan, here)
        if consented:
            write_declaration(cluster.path, declared)
        return consented

    write_declaration(cluster.path, declared.model_copy(update={"agreed": False}))
    try:
        done = _deploy(cluster, declared, before, limit, agreed, watch)
    except BaseException:
        if not consented:  # otherwise `resume` needs it
            _restore(cluster, before)
        raise
    if done.exit_code is ExitCode.CHANGES_PENDING:  # declined
        _restore(cluster, before)
    else:
        write_declaration(cluster.path, declared)
    done.without = [name for name in done.plan.nodes if name not in known]
    return done


def _deploy(
    cluster: Cluster,
    declared: Declaration,
    before: Declaration | None,
    limit: str | None,
    agree: Agree,
    watch: Watcher | None,
) -> Done:
    def here() -> Here | None:
        if _checked_from_here(declared):
            return Here(cluster, declared, wanted=True)
        if before is not None and _checked_from_here(before):
            return Here(cluster, before, wanted=False)
        return None

    return _carry_out(cluster, INSTALL, limit, here, agree, watch)


def uninstall(
    cluster: Cluster,
    *,
    limit: str | None = None,
    agree: Agree = lambda plan, here: True,
    watch: Watcher | None = None,
) -> Done:
    """Remove it from the nodes and from this machine; the declaration last, once everything else is gone."""
    declared = read_declaration(cluster.path)

    def here() -> Here | None:
        if declared is None or limit or not _checked_from_here(declared):
            return None
        return Here(cluster, declared, wanted=False)

    done = _carry_out(cluster, UNINSTALL, limit, here, agree, watch, here_first=True)
    if done.exit_code is ExitCode.CLEAN and limit is None:
        path_of(cluster.path).unlink(missing_ok=True)
        for kept in (state_folder(cluster.name) / "drift").glob("*.json"):
            kept.unlink()
    return done


def update_digests(cluster: Cluster, applied: Applied) -> str | None:
    """After an apply: update an installed drift check to expect the current answers of the nodes in sync.

    Returns a sentence, or None if there is nothing to report. Never raises a RackwrightError: the
    apply itself succeeded.
    """
    try:
        declared = read_declaration(cluster.path)
        names = applied.in_sync
        if declared is None or not names:
            return None
        if not declared.agreed:
            return "drift check: its installation was interrupted; run `rackwright drift install` again"
        before = {name: kept_of(cluster, name) for name in names}
        known = take(cluster, fold(names), asked_just_now=True)
        moved = [name for name, baseline in known.items() if baseline != before[name]]
        if not moved:
            return None
        limit = _with_head(cluster, declared, fold(moved))
        done = _deploy(cluster, declared, declared, limit, lambda plan, here: True, None)
    except RackwrightError as error:
        return f"drift check: cannot update the expected digests: {error.message}"
    except OSError as error:  # of this machine's disk
        return f"drift check: cannot update the expected digests: {error}"
    failed = {node.node for node in done.plan.failed}
    if done.result is not None:
        failed |= {outcome.node for outcome in done.result.failed}
    if failed:
        lost = fold(sorted(failed))
        return f"drift check: cannot update the expected digests on {lost}"
    return f"drift check: expected digests updated on {fold(moved)}"


def _checked_from_here(declared: Declaration) -> bool:
    return declared.mode == "push" and declared.on == "here"


def _with_head(cluster: Cluster, declared: Declaration, limit: str | None) -> str | None:
    """A head that is the checker has the expected digests of all nodes: it is part of every run."""
    if limit is None or declared.mode != "push" or declared.on != "head":
        return limit
    return f"{limit},{cluster.primary.name}"


def _carry_out(
    cluster: Cluster,
    deploy: Path,
    limit: str | None,
    here: Callable[[], Here | None],
    agree: Agree,
    watch: Watcher | None,
    *,
    here_first: bool = False,
) -> Done:
    """Plan the nodes and this machine, ask for confirmation, and apply.

    This machine may be one of the nodes, so it is planned again after them.
    """
    agreed = False
    planned = here()
    shown = planned.operations if planned is not None else ()

    def asked(plan: PlanResult) -> bool:
        nonlocal agreed
        agreed = agree(plan, shown)
        if agreed and here_first and planned is not None:
            planned.apply()
        return agreed

    applied = apply(cluster, limit=limit, roles=ROLES, deploy=deploy, agree=asked, watch=watch, waves=Waves())
    if shown and not applied.plan.changes:
        agreed = agree(None, shown)
    if agreed and (again := here()) is not None:
        again.apply()
    return Done(applied.plan, applied.result, shown, agreed)


def _restore(cluster: Cluster, before: Declaration | None) -> None:
    if before is None:
        path_of(cluster.path).unlink(missing_ok=True)
    else:
        write_declaration(cluster.path, before)


def _python_here() -> str:
    """This interpreter, if any user can run it with this package."""
    done = subprocess.run(
        ["runuser", "-u", "nobody", "--", sys.executable, "-I", "-c", _PROBE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    homes = ("/home/", "/root/", "/run/user/")  # hidden from the service (ProtectHome)
    if done.returncode or sys.executable.startswith(homes) or __file__.startswith(homes):
        why = last_line(done.stderr) if done.stderr.strip() else "it is in a home folder"
        raise RackwrightError(
            f"The user {paths.USER} cannot run rackwright with {sys.executable}: {why}",
            hint="install rackwright where every user can read it, e.g. in /opt/rackwright, and run that one",
        )
    return sys.executable


def _python_on_head(cluster: Cluster) -> str:
    """An interpreter on the primary head with this version of rackwright; nothing is downloaded."""
    head = cluster.primary.name
    others = []
    with Pool(cluster) as pool:
        for python in _PYTHONS:
            probe = f"cd / && runuser -u nobody -- {python} -I -c {quote(_PROBE)}"
            answer = pool.run(head, probe, timeout=60)
            version, _, executable = answer.stdout.strip().partition(" ")
            is_path = executable.startswith("/") and executable.isprintable()  # it goes into a unit file
            if answer.exit_status == 0 and version == __version__ and is_path:
                return executable
            if answer.exit_status == 0:
                others.append(f"{python} has {printable(version, 40)}")
    raise RackwrightError(
        f"{head} has no rackwright {__version__} to check the nodes with"
        + (f" ({'; '.join(others)})." if others else "."),
        hint="install it there for Python 3.11 or newer: python3 -m venv /opt/rackwright && "
        "/opt/rackwright/bin/pip install rackwright; or use --on here, or --mode pull",
    )
