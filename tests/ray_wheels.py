"""Wheels of the role ray's lock as a web page on a rack's bridge: what a site without an index has for its nodes.

    python -m tests.ray_wheels lab-ray 10.78.0.1 COMMAND ARGUMENT...    serves them while a command runs

pip downloads them from its configured index, compares each with the lock and keeps them beside the lab's images.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from packaging.markers import Marker

from rackwright.lab import names, network
from rackwright.render import render
from tests.ray_lock import environment_of

PYTHON, MACHINE = "3.13", "x86_64"
"""Of the racks' Debian 13."""
PORT = 8080
_MANYLINUX = (
    "manylinux_2_34",
    "manylinux_2_31",
    "manylinux_2_28",
    "manylinux_2_17",
    "manylinux2014",
    "manylinux1",
)
_REQUIREMENT = re.compile(
    r"^(?P<name>[^ ;]+==[^ ;]+)(?: ; (?P<marker>.*?))? \\\n(?P<hashes>(?:    .*\n?)+)", re.MULTILINE
)


def requirements(lock: str, python: str = PYTHON) -> str:
    """Those of one Python, without markers: pip evaluates them for its own interpreter."""
    there = environment_of(python, MACHINE)
    return "".join(
        f"{found['name']} \\\n{found['hashes']}"
        for found in _REQUIREMENT.finditer(lock)
        if found["marker"] is None or Marker(found["marker"]).evaluate(there)
    )


def downloaded(lock: str | None = None, python: str = PYTHON, more: str = "", *options: str) -> Path:
    """The folder of a lock's wheels (None: the role's own, 210 MB), downloaded once.

    `more` are further requirements, downloaded with these options of pip.
    """
    parts = [(requirements(lock or render("ray/requirements.txt.j2"), python), ()), (more, options)]
    wanted = "".join(text for text, _ in parts)
    folder = names.lab_dir() / "wheels" / hashlib.sha256(wanted.encode()).hexdigest()[:16]
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for text, chosen in parts:
        if text:
            _download(folder, text, python, chosen)
    (folder / "complete").touch()
    return folder


def _download(folder: Path, wanted: str, python: str, options: Sequence[str]) -> None:
    (folder / "requirements.txt").write_text(wanted)
    platforms = [f"--platform={one}_{MACHINE}" for one in _MANYLINUX]
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    chosen = ["--only-binary=:all:", f"--python-version={python}", *platforms, *options, "-d", str(folder)]
    subprocess.run([*line, *chosen, "-r", str(folder / "requirements.txt")], check=True, timeout=900)


@contextmanager
def served(rack: str, address: str, folder: Path | None = None) -> Iterator[str]:
    """A folder of wheels (None: the role's own), until the end of the block, at the URL, which nodes of the rack reach."""
    command = [
        sys.executable,
        "-m",
        "http.server",
        "--bind",
        address,
        "--directory",
        str(folder or downloaded()),
        str(PORT),
    ]
    inside = network.inside(names.namespace(rack), command)
    with subprocess.Popen(inside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            time.sleep(1)
            if process.poll() is not None:
                raise SystemExit(f"nothing serves wheels at {address}:{PORT}: is the rack {rack} up?")
            yield f"http://{address}:{PORT}/"
        finally:
            process.terminate()


def main(rack: str, address: str, *command: str) -> int:
    """The command's exit status."""
    with served(rack, address):
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
