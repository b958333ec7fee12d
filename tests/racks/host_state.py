"""What a rack must leave as it is on the machine that runs it, as text that can be compared.

Other racks of the machine come and go meanwhile; what bears their names is left out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

State = dict[str, list[str]]

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_FIREWALL = (("nft", "list", "ruleset"), ("iptables-save",), ("ip6tables-save",))
_RACK = re.compile(r"/(?:run/netns/rw-|run/rackwright/lab/|racks/|rackwright/)([a-z0-9-]+)")
"""Where the name of a rack is part of a path: namespaces, state, disks, control groups."""
_PROBED = "/boot-images/"
"""In the command line of a qemu that only tries the machine's KVM."""


def host_state(own: str, programs: tuple[str, ...] = ()) -> State:
    """Links, addresses, routes, firewall, mounts, namespaces, loop and md devices, and the rack's processes.

    `own` is the name of the rack that is looked at; of `programs` every process counts.
    """
    return {
        "links": _links(),
        "addresses": _words("ip", "-o", "address"),
        "routes": _words("ip", "route", "show", "table", "all"),
        "rules": _words("ip", "rule"),
        "neighbours of bridges": _words("bridge", "fdb", "show"),
        "firewall": _firewall(),
        "mounts": _of(own, _mounts()),
        "namespaces": _of(own, (f"/run/netns/{path.name}" for path in Path("/run/netns").glob("*"))),
        "loop devices": _of(own, _backed("loop", "loop/backing_file")),
        "md devices": _of(own, _backed("md", "md/array_state")),
        "processes": _of(own, _processes(own, programs)),
        "groups": _of(own, _groups()),
    }


def differences(before: State, after: State) -> list[str]:
    """What came or went, one line each; empty where the machine is as it was."""
    return [
        f"{kind} {sign} {line}"
        for kind in before
        for sign, lines in (
            ("-", _missing(before[kind], after[kind])),
            ("+", _missing(after[kind], before[kind])),
        )
        for line in lines
    ]


def _missing(lines: list[str], among: list[str]) -> list[str]:
    left = list(among)
    missing = []
    for line in lines:
        if line in left:
            left.remove(line)
        else:
            missing.append(line)
    return missing


def _of(own: str, lines: Iterable[str]) -> list[str]:
    """Those that name no rack, or this one."""
    return sorted(line for line in lines if (rack := _RACK.search(line)) is None or rack.group(1) == own)


def _output(*command: str) -> str:
    environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def _words(*command: str) -> list[str]:
    """Lines without what only counts down."""
    text = re.sub(r"(valid|preferred)_lft \d+sec|expires \d+sec", "", _output(*command))
    return sorted(" ".join(line.split()) for line in text.splitlines())


def _links() -> list[str]:
    kept = ("ifname", "link_type", "address", "mtu", "master", "operstate", "flags", "link_netnsid")
    return sorted(
        str({key: link.get(key) for key in kept}) for link in json.loads(_output("ip", "-j", "link"))
    )


def _firewall() -> list[str]:
    """Rules without their counters; AssertionError where no installed program can print them."""
    programs = [one for one in _FIREWALL if shutil.which(one[0], path=_PATH) is not None]
    assert programs, (
        "UNKNOWN: the firewall's rules can be read by nft or iptables-save alone: apt-get install nftables"
    )
    text = "\n".join(_output(*one) for one in programs)
    text = re.sub(r"packets \d+ bytes \d+|\[\d+:\d+\]", "", text)
    return [line for line in text.splitlines() if not line.startswith("#")]  # comments hold the time of day


def _mounts() -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        # without the two ids, which differ at each mount, and the device of a filesystem without one
        fields = line.split(" ")
        yield " ".join(fields[3:])


def _backed(kind: str, file: str) -> Iterator[str]:
    for folder in Path("/sys/block").glob(f"{kind}[0-9]*"):
        with suppress(OSError):  # a loop device that has no file
            yield f"{folder.name} {(folder / file).read_text().strip()}"


def _processes(own: str, programs: tuple[str, ...]) -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name = (entry / "comm").read_text().strip()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            groups = (entry / "cgroup").read_text()
            alive = "\nVmSize:" in (entry / "status").read_text()  # a dead one waits for its parent only
            ours = f"/rackwright/{own}" in groups or f"rw-{own}" in command or f"lab/{own}/" in command
            if alive and (ours or _PROBED in command or name in programs):
                yield f"{entry.name} {name}"


def _groups() -> Iterator[str]:
    for root in (*Path("/sys/fs/cgroup").glob("*/rackwright"), Path("/sys/fs/cgroup/rackwright")):
        if root.is_dir():
            yield from (str(path) for path in root.iterdir() if path.is_dir())
