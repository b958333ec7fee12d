"""Runs the chosen operations in a tree, and leaves it generic and complete."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rackwright.errors import ImageError
from rackwright.image import sandbox
from rackwright.image.choice import BuildStep, Choice, Written
from rackwright.image.general import make_general, refuse_secrets
from rackwright.image.manifest import PACKAGE_QUERY, Package, packages
from rackwright.lab import names, sources

_APT_SETTINGS = ("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-Valid-Until")
"""Taken from this host, which reads the same archives; a node has its own."""


def install(choice: Choice, tree: Path, suite: str, log: Callable[[str], None]) -> tuple[Package, ...]:
    """Carry out the steps, make the tree general, and return its packages.

    Services that the roles configure do not start at the first boot, which comes before their configuration.

    Raises ImageError naming the operation that failed, a package that is not whole, or a secret left behind.
    """
    with _package_cache(suite) as archives:
        sandbox.prepare(tree, apt_settings())
        before = enabled(tree, choice.units)
        for step in choice.steps:
            log(f"{step.role}: {step.name}")
            _carry_out(step, tree, archives)
        if early := sorted(enabled(tree, choice.units) - before):
            sandbox.run_inside(tree, archives, f"systemctl disable {shlex.join(early)}", "systemctl disable")
        audit = sandbox.run_inside(tree, archives, "dpkg --audit", "dpkg --audit")
        if audit.strip():
            raise ImageError(f"packages are half installed in the image:\n{audit.strip()}")
        listed = sandbox.run_inside(tree, archives, PACKAGE_QUERY, "dpkg-query")
    sandbox.settle(tree)
    make_general(tree)
    refuse_secrets(tree)
    return packages(listed)


def enabled(tree: Path, units: Sequence[str]) -> set[str]:
    """Those of the units that a target of the tree starts at boot."""
    started = {path.name for path in (tree / "etc/systemd/system").glob("*.[wr]*s/*")}
    return started & set(units)


def apt_settings() -> str:
    """apt's settings of this host that reach the archive, for the length of a build."""
    lines = [
        f'{name} "{value}";\n' for name in _APT_SETTINGS if (value := sources.apt_setting(name)) is not None
    ]
    return "".join(lines)


def _carry_out(step: BuildStep, tree: Path, archives: Path) -> None:
    for file in step.files:
        write(file, tree)
    for command in step.commands:
        sandbox.run_inside(tree, archives, command, f"{step.role}: {step.name}")


def write(file: Written, tree: Path) -> None:
    """A file or folder in the tree, with an owner that the tree knows by name."""
    path = tree / file.path.lstrip("/")
    if file.content is None:
        path.mkdir(parents=True, exist_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content)
    os.chown(path, _id(tree, "passwd", file.owner), _id(tree, "group", file.group))
    path.chmod(file.mode)


def _id(tree: Path, database: str, name: str) -> int:
    for line in (tree / "etc" / database).read_text().splitlines():
        fields = line.split(":")
        if fields[0] == name:
            return int(fields[2])
    raise ImageError(f"{name} is not in /etc/{database} of the image")


@contextmanager
def _package_cache(suite: str) -> Iterator[Path]:
    """The folder of downloaded packages of a suite: apt verifies them again, and locks it for one user at a time."""
    folder = names.lab_dir() / "packages" / suite
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder.with_name(f"{suite}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)
