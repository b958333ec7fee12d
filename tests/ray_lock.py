"""Writes the lock of the role ray: every wheel of Ray and of what it needs, by hash, for each supported Python.

    python -m tests.ray_lock 2.60.0 > templates/ray/requirements.txt.j2

uv (from PyPI) solves; a package without a wheel for one of PYTHONS or MACHINES ends the program.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

EXTRAS = "default,train,tune,data,serve"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""Of Ubuntu 22.04, Debian 12, Ubuntu 24.04, Debian 13 and Ubuntu 26.04."""
MACHINES = ("x86_64", "aarch64")
GLIBC = range(5, 36)
"""manylinux_2_N: up to what the oldest of these systems has, Ubuntu 22.04's 2.35."""


def solved(version: str) -> dict[str, Any]:
    """uv's answer as a pylock.toml (PEP 751)."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, lock = Path(folder) / "in.txt", Path(folder) / "pylock.toml"
        wanted.write_text(f"ray[{EXTRAS}]=={version}\n")
        line = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", PYTHONS[0]]
        subprocess.run(
            [*line, "--format", "pylock.toml", "-o", str(lock), str(wanted)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return tomllib.loads(lock.read_text())


def lines(lock: dict[str, Any]) -> Iterable[str]:
    """pip's requirements, one for each package, with the hashes of its wheels."""
    for package in lock["packages"]:
        marker = package.get("marker")
        marker = None if marker == f"python_full_version >= '{PYTHONS[0]}'" else marker
        hashes = set()
        for python in PYTHONS:
            for machine in MACHINES:
                if marker is not None and not Marker(marker).evaluate(environment_of(python, machine)):
                    continue
                found = _hashes(package, python, machine)
                if not found:
                    name = f"{package['name']} {package['version']}"
                    raise SystemExit(f"{name} has no wheel for Python {python} on {machine}")
                hashes |= found
        if hashes:
            suffix = f" ; {marker}" if marker is not None else ""
            yield f"{package['name']}=={package['version']}{suffix} \\"
            yield " \\\n".join(f"    --hash=sha256:{one}" for one in sorted(hashes))


def environment_of(python: str, machine: str) -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.1",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": machine,
        "os_name": "posix",
    }


def _hashes(package: dict[str, Any], python: str, machine: str) -> set[str]:
    major, minor = (int(part) for part in python.split("."))
    platforms = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    tags: set[Tag] = {
        *cpython_tags((major, minor), platforms=platforms),
        *compatible_tags((major, minor), f"cp{major}{minor}", platforms),
    }
    found = set()
    for wheel in package.get("wheels", ()):
        name = wheel.get("name") or wheel["url"].rpartition("/")[2]
        if not tags.isdisjoint(parse_wheel_filename(name)[3]):
            found.add(wheel["hashes"]["sha256"])
    return found


def main(version: str) -> None:
    """The whole file, on standard output."""
    today = datetime.now(UTC).date()
    print(
        f"# ray[{EXTRAS}]=={version}, locked on {today} for Python {', '.join(PYTHONS)} on {', '.join(MACHINES)}."
    )
    print(f"# Written by python -m tests.ray_lock {version}; not meant to be edited.")
    for line in lines(solved(version)):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1])
