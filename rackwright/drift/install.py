"""Install and uninstall: the declaration, the nodes, and the machine that asks them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from rackwright import __version__
from rackwright.drift import here, places
from rackwright.drift.baseline import kept_of, take
from rackwright.drift.declaration import Declaration, path_of, read_declaration, write_declaration
from rackwright.engine.run import Applied, apply
from rackwright.engine.session import Watcher
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.model.ranges import fold
from rackwright.model.settings import Waves
from rackwright.plan.node_plan import ApplyResult, PlanResult
from rackwright.secrets.store import store_of
from rackwright.ssh import Pool
from rackwright.state_folder import state_folder

PLACED = Path(__file__).with_name("placed.py")
REMOVED = Path(__file__).with_name("removed.py")
ROLES = frozenset({"drift"})
"""The engine's memory of what the site's deploy asks must not learn from ours."""
_PYTHONS = ("/opt/rackwright/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3")
_PROBE = "import sys, rackwright.drift.check, apprise; print(rackwright.__version__, sys.executable)"

Agree = Callable[[PlanResult | None, list[here.Step]], bool]
"""(plan of the nodes, steps here) -> whether to go on."""


@dataclass
class Done:
    """What came of it."""

    plan: PlanResult
    result: ApplyResult | None
    steps: list[here.Step]
    agreed: bool
    without: list[str] = field(default_factory=list)
    """Nodes that were never seen in sync, of which nothing is expected yet."""

    @property
    def exit_code(self) -> ExitCode:
        """CHANGES_PENDING if it was not agreed to; else ERROR, UNKNOWN or CLEAN."""
        if self.result is not None:
            return self.result.exit_code
        if self.steps and not self.agreed:
            return ExitCode.CHANGES_PENDING
        return self.plan.exit_code


def install(
    cluster: Cluster,
    declared: Declaration,
    *,
    urls: Sequence[str] | None = None,
    limit: str | None = None,
    agree: Agree = lambda plan, steps: True,
    watch: Watcher | None = None,
) -> Done:
    """Declare it, and bring the nodes and the asking machine to what is declared.

    `urls` None keeps those of an earlier installation.
    """
    before = read_declaration(cluster.path)
    if urls is None:
        declared = declared.model_copy(update={"notify": before is not None and before.notify})
    else:
        declared = declared.model_copy(update={"notify": bool(urls)})
    if declared.mode == "push":
        store_of(cluster).get(places.KEY_SECRET)
        if urls:
            store_of(cluster).put(places.NOTIFY_SECRET, json.dumps(list(urls)))
        python = _python_here() if declared.on == "here" else _python_on_head(cluster)
        declared = declared.model_copy(update={"python": python})
    limit = _with_head(cluster, declared, limit)
    known = take(cluster, limit, watch)
    consented = False

    def agreed(plan: PlanResult | None, steps: list[here.Step]) -> bool:
        nonlocal consented
        consented = consented or agree(plan, steps)
        if consented:
            write_declaration(cluster.path, declared)
        return consented

    write_declaration(cluster.path, declared.model_copy(update={"agreed": False}))
    try:
        done = _place(cluster, declared, before, limit, agreed, watch)
    except BaseException:
        if not consented:  # else `resume` needs it
            _restore(cluster, before)
        raise
    if done.exit_code is ExitCode.CHANGES_PENDING:  # it was not agreed to
        _restore(cluster, before)
    else:
        write_declaration(cluster.path, declared)
    done.without = [name for name in done.plan.nodes if name not in known]
    return done


def _place(
    cluster: Cluster,
    declared: Declaration,
    before: Declaration | None,
    limit: str | None,
    agree: Agree,
    watch: Watcher | None,
) -> Done:
    asks_here = declared.mode == "push" and declared.on == "here"
    asked_here = before is not None and before.mode == "push" and before.on == "here"

    def steps() -> list[here.Step]:
        if asks_here:
            return here.steps_to_install(cluster, declared)
        return here.steps_to_uninstall(cluster, before) if asked_here and before is not None else []

    return _carry_out(cluster, PLACED, limit, steps, agree, watch)


def uninstall(
    cluster: Cluster,
    *,
    limit: str | None = None,
    agree: Agree = lambda plan, steps: True,
    watch: Watcher | None = None,
) -> Done:
    """Remove every trace from the nodes and from here; the declaration last, once all of it is gone."""
    declared = read_declaration(cluster.path)
    asked_here = declared is not None and declared.mode == "push" and declared.on == "here"

    def steps() -> list[here.Step]:
        return here.steps_to_uninstall(cluster, declared) if declared and asked_here and not limit else []

    done = _carry_out(cluster, REMOVED, limit, steps, agree, watch, here_first=True)
    if done.exit_code is ExitCode.CLEAN and limit is None:
        path_of(cluster.path).unlink(missing_ok=True)
        for kept in (state_folder(cluster.name) / "drift").glob("*.json"):
            kept.unlink()
    return done


def update_digests(cluster: Cluster, applied: Applied) -> str | None:
    """After an apply: an installed drift check expects what the nodes in sync answer now.

    Returns a sentence, or None where there is nothing to report. Never raises a RackwrightError: the
    apply itself was done.
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
        done = _place(cluster, declared, declared, limit, lambda plan, steps: True, None)
    except RackwrightError as error:
        return f"drift check: expected digests could not be updated: {error.message}"
    failed = {node.node for node in done.plan.failed}
    if done.result is not None:
        failed |= {outcome.node for outcome in done.result.failed}
    if failed:
        lost = fold(sorted(failed))
        return f"drift check: expected digests could not be updated on {lost}"
    return f"drift check: expected digests updated on {fold(moved)}"


def _with_head(cluster: Cluster, declared: Declaration, limit: str | None) -> str | None:
    """The head that asks has the digests of all others, so it goes along with any of them."""
    if limit is None or declared.mode != "push" or declared.on != "head":
        return limit
    return f"{limit},{cluster.primary.name}"


def _carry_out(
    cluster: Cluster,
    deploy: Path,
    limit: str | None,
    steps: Callable[[], list[here.Step]],
    agree: Agree,
    watch: Watcher | None,
    *,
    here_first: bool = False,
) -> Done:
    """The nodes and this machine, once both were shown and agreed to.

    This machine may be one of the nodes, so what is to be done here is looked up anew after them.
    """
    agreed = False
    shown = steps()

    def asked(plan: PlanResult) -> bool:
        nonlocal agreed
        agreed = agree(plan, shown)
        if agreed and here_first:
            here.carry_out(shown)
        return agreed

    applied = apply(cluster, limit=limit, roles=ROLES, deploy=deploy, agree=asked, watch=watch, waves=Waves())
    if shown and not applied.plan.changes:
        agreed = agree(None, shown)
    if agreed:
        here.carry_out(steps())
    return Done(applied.plan, applied.result, shown, agreed)


def _restore(cluster: Cluster, before: Declaration | None) -> None:
    if before is None:
        path_of(cluster.path).unlink(missing_ok=True)
    else:
        write_declaration(cluster.path, before)


def _python_here() -> str:
    """This interpreter, if the user who will run it can read it and the package."""
    done = subprocess.run(
        ["runuser", "-u", "nobody", "--", sys.executable, "-I", "-c", _PROBE],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )
    homes = ("/home/", "/root/", "/run/user/")  # which the service is not shown
    if done.returncode or sys.executable.startswith(homes) or __file__.startswith(homes):
        said = (done.stderr.strip() or "it lies in a home folder").splitlines()[-1]
        raise RackwrightError(
            f"The user {places.USER} could not run rackwright from {sys.executable}: {said}",
            hint="install rackwright where everybody can read it, e.g. into /opt/rackwright, and run that one",
        )
    return sys.executable


def _python_on_head(cluster: Cluster) -> str:
    """An interpreter of the primary head that has this version of rackwright; nothing is fetched."""
    head = cluster.primary.name
    found = []
    with Pool(cluster) as pool:
        for python in _PYTHONS:
            probe = f"cd / && runuser -u nobody -- {python} -I -c {quote(_PROBE)}"
            said = pool.run(head, probe, timeout=60)
            version, _, executable = said.stdout.strip().partition(" ")
            if said.exit_status == 0 and version == __version__:
                return executable
            if said.exit_status == 0:
                found.append(f"{python} has {version}")
    raise RackwrightError(
        f"{head} has no rackwright {__version__} to ask the nodes with"
        + (f" ({'; '.join(found)})." if found else "."),
        hint="install it there for Python 3.11 or newer: python3 -m venv /opt/rackwright && "
        "/opt/rackwright/bin/pip install rackwright; or use --on here, or --mode pull",
    )
