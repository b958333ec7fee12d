"""The asking side of push mode on the machine rackwright runs on, which is no node of the cluster.

What has to change is found first and told, as a plan; then it is done as root (through sudo where
rackwright does not run as root), and a second time there is nothing to do.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote

from rackwright.atomic_write import write_command
from rackwright.drift import places
from rackwright.drift.checker import Piece, expected_path, folders, pieces
from rackwright.drift.declaration import Declaration
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster
from rackwright.secrets.store import store_of

_SECONDS = 60
_LOOK = "[ -L {p} ] && {{ readlink {p}; exit; }}; stat -c '%F %a %U %G' {p} && [ ! -f {p} ] || sha256sum <{p}"


@dataclass(frozen=True)
class Step:
    """One thing to do; `stdin` may be a secret and is never shown."""

    what: str
    command: str
    stdin: str | None = None


Shell = Callable[[str, str | None], str]
"""(command, stdin) -> stdout; run as root."""


def root_shell(command: str, stdin: str | None = None) -> str:
    """Run a command as root here; RackwrightError with its last words."""
    argv = ["sh", "-c", command] if os.geteuid() == 0 else ["sudo", "-n", "sh", "-c", command]
    try:
        done = subprocess.run(
            argv, input=stdin or "", capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RackwrightError(f"A command of root's could not be run here: {error}.") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise RackwrightError(
            f"This machine could not be set up to look for drift: {said}",
            hint="push mode needs root here (or passwordless sudo) and systemd",
        )
    return done.stdout


def steps_to_install(cluster: Cluster, declared: Declaration, shell: Shell = root_shell) -> list[Step]:
    """What is missing here."""
    steps = []
    if not shell(f"getent passwd {places.USER} || :", None):
        make = f"useradd --system --user-group --no-create-home --home-dir {places.HOME} --shell /bin/sh"
        steps.append(Step(f"make user {places.USER}", f"{make} {places.USER}"))
    parents = [Piece(places.FOLDER, mode="755"), Piece(places.HOME, mode="755")]
    steps += [step for folder in (*parents, *folders(cluster)) for step in _folder(folder, shell)]
    marker = Piece(f"{places.check_folder(cluster.name)}/{places.HERE}")
    there = shell(f"cat {expected_path(cluster)} 2>/dev/null || :", None)
    wanted = [marker, *pieces(cluster, declared, store_of(cluster).get, there)]
    written = [step for piece in wanted if (step := _file(piece, shell)) is not None]
    name = places.metrics_name(cluster.name)
    steps += written + _link(declared, name, f"{places.state_of(cluster.name)}/{name}", shell)
    unit = places.check_unit(cluster.name)
    if any(step.what.startswith(f"write {places.UNITS}/") for step in written):
        steps.append(Step("let systemd read its units", "systemctl daemon-reload"))
        steps.append(
            Step(f"run {unit}.timer", f"systemctl enable {unit}.timer && systemctl restart {unit}.timer")
        )
    elif shell(f"systemctl is-enabled {unit}.timer && systemctl is-active {unit}.timer; :", None).split() != [
        "enabled",
        "active",
    ]:
        steps.append(Step(f"run {unit}.timer", f"systemctl enable --now {unit}.timer"))
    return steps


def steps_to_uninstall(cluster: Cluster, declared: Declaration, shell: Shell = root_shell) -> list[Step]:
    """What is left here. The user goes with the last cluster that is looked after from here."""
    unit = places.check_unit(cluster.name)
    paths = [
        f"{places.UNITS}/{unit}.timer",
        f"{places.UNITS}/{unit}.service",
        f"/var/lib/systemd/timers/stamp-{unit}.timer",
        f"{declared.textfiles}/{places.metrics_name(cluster.name)}",
        places.check_folder(cluster.name),
        places.state_of(cluster.name),
    ]
    steps = []
    there = [
        path for path in paths if shell(f"[ -e {quote(path)} ] || [ -L {quote(path)} ] && echo y || :", None)
    ]
    if any(path.startswith(places.UNITS) for path in there):
        stop = f"systemctl disable --now {unit}.timer; systemctl stop {unit}.service || :"
        steps.append(Step(f"stop {unit}.timer", stop))
    steps += [Step(f"remove {path}", f"rm -rf -- {quote(path)}") for path in there]
    if steps:
        forget = (
            f"systemctl daemon-reload; systemctl reset-failed {unit}.service {unit}.timer 2>/dev/null || :"
        )
        steps.append(Step("let systemd forget its units", forget))
    others = shell(f"ls -d {places.FOLDER}/*/ {places.QUESTIONS} 2>/dev/null || :", None).split()
    if {path.rstrip("/") for path in others} - {places.check_folder(cluster.name)}:
        return steps
    made = f'[ ! -e {places.MADE_TEXTFILES} ] || rmdir -p --ignore-fail-on-non-empty "$(cat {places.MADE_TEXTFILES})"'
    if shell(f"[ -d {places.FOLDER} ] || [ -d {places.HOME} ] && echo y || :", None):
        steps.append(Step("remove its folders", f"{made}; rm -rf {places.FOLDER} {places.HOME}"))
    if shell(f"getent passwd {places.USER} || :", None):
        steps.append(Step(f"remove user {places.USER}", f"userdel {places.USER}"))
    return steps


def carry_out(steps: list[Step], shell: Shell = root_shell) -> None:
    """Do them in order."""
    for step in steps:
        shell(step.command, step.stdin)


def _folder(piece: Piece, shell: Shell) -> list[Step]:
    path, owned = quote(piece.path), f"{piece.owner}:{piece.group}"
    wanted = f"directory {piece.mode} {piece.owner} {piece.group}"
    if shell(f"stat -c '%F %a %U %G' {path} 2>/dev/null || :", None).strip() == wanted:
        return []
    make = f"mkdir -p {path} && chown {owned} {path} && chmod {piece.mode} {path}"
    return [Step(f"make {piece.path}", make)]


def _file(piece: Piece, shell: Shell) -> Step | None:
    path, raw = quote(piece.path), piece.content.encode()
    kind = "regular file" if raw else "regular empty file"
    wanted = f"{kind} {piece.mode} {piece.owner} {piece.group}\n{hashlib.sha256(raw).hexdigest()}"
    there = shell(f"( {_LOOK.format(p=path)} ) 2>/dev/null || :", None).strip()
    if there.removesuffix("  -") == wanted:
        return None
    write, stdin = write_command(piece.path, raw, mode=piece.mode, owner=piece.owner, group=piece.group)
    return Step(f"write {piece.path}", write, stdin)


def _link(declared: Declaration, name: str, target: str, shell: Shell) -> list[Step]:
    folder, path = quote(declared.textfiles), quote(f"{declared.textfiles}/{name}")
    steps = []
    if not shell(f"[ ! -d {folder} ] || echo y", None):
        make = f"mkdir -p {folder} && printf %s {folder} >{places.MADE_TEXTFILES}"
        steps.append(Step(f"make {declared.textfiles}", make))
    if shell(f"readlink {path} || :", None).strip() != target:
        steps.append(Step(f"link {declared.textfiles}/{name}", f"ln -sfn {quote(target)} {path}"))
    return steps
