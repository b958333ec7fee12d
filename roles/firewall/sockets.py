"""Listening sockets as `ss` prints them, and whether each is declared. Pure functions.

Columns and extended fields: ss(8) of iproute2 5.10 to 6.15, which all families have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal

from rackwright.model.cluster import Cluster, Node
from rackwright.model.listening import Declared
from rackwright.model.services import Listener

ASK = "ss -Hltunpe"
KERNEL = "kernel"
"""What a socket without a process is called: NFS, RoCE in software, tunnels."""
_LINE = re.compile(r"(tcp|udp)\s+\S+\s+\d+\s+\d+\s+(\S+):(\d{1,5})\s+\S+:(?:\*|\d{1,5})(?:\s+(.*))?")
_PROGRAMS = re.compile(r'"((?:[^"\\]|\\.)*)",pid=\d+,fd=\d+')
_JOB = re.compile(r"/slurmstepd\.scope/|/job_[0-9]+(/|$)")
"""Control groups in which a workload manager runs jobs, of root's too."""
DHCP = frozenset({("udp", 68), ("udp", 546)})
"""Clients of DHCP; the rules let in answers to them, and every distribution has another one."""


class UnreadableSocketsError(ValueError):
    """What `ss` printed is not a list of sockets."""


@dataclass(frozen=True)
class Socket:
    """One socket that waits for others."""

    protocol: Literal["tcp", "udp"]
    address: IPv4Address | IPv6Address | None
    """None: all of the node's."""
    port: int
    programs: tuple[str, ...]
    """Empty: its owner is not visible."""
    uid: int
    cgroup: str

    @property
    def local(self) -> bool:
        """Whether nothing outside of the node can reach it."""
        mapped = self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else None
        address = mapped or self.address
        return address is not None and address.is_loopback

    @property
    def of_user(self) -> bool:
        """Whether it is of a user's process or of a job: ports of MPI ranks and notebooks come and go.

        Users have ids from 1000 up to 60000 (login.defs of Debian and EL), or beyond 65535 where a directory has
        many; what is between is systemd's and the distributions' (https://systemd.io/UIDS-GIDS/, read 2026-11-24).
        """
        return 1000 <= self.uid <= 60000 or self.uid > 65535 or _JOB.search(self.cgroup) is not None

    def __str__(self) -> str:
        program = " and ".join(self.programs)
        where = "every address" if self.address is None else str(self.address)
        return f"{program} on {where}, {self.protocol} port {self.port}"


def parse_sockets(printed: str) -> tuple[Socket, ...]:
    """`ss -Hltunpe`, run by root.

    Raises UnreadableSocketsError where a line is something else.
    """
    return tuple(_socket(line) for line in printed.splitlines() if line.strip())


def _socket(line: str) -> Socket:
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise UnreadableSocketsError(f"ss printed {line.strip()[:100]!r}")
    protocol, host, port, rest = found.groups(default="")
    # a process may call itself almost anything, so what follows its name is read from the end
    who, _, after = rest.rpartition("))")
    programs = tuple(dict.fromkeys(_PROGRAMS.findall(who)))
    details = dict(word.partition(":")[::2] for word in after.split() if ":" in word)
    if not programs and details.get("ino", "0") == "0":
        programs = (KERNEL,)
    return Socket(
        protocol="tcp" if protocol == "tcp" else "udp",
        address=_address(host, line),
        port=int(port),
        programs=programs,
        uid=int(details.get("uid", "0")) if details.get("uid", "0").isdigit() else 0,
        cgroup=details.get("cgroup", ""),
    )


def _address(host: str, line: str) -> IPv4Address | IPv6Address | None:
    bare = host.strip("[]").partition("%")[0].strip("[]")
    if bare in ("*", "0.0.0.0", "::"):
        return None
    try:
        return ip_address(bare)
    except ValueError:
        raise UnreadableSocketsError(f"ss printed {line.strip()[:100]!r}") from None


@dataclass(frozen=True)
class Verdict:
    """What was found on a node, by kind."""

    wrong: tuple[str, ...]
    """A sentence for each socket that nothing declares, or that is where it is not declared."""
    unseen: tuple[Socket, ...]
    """Those whose process could not be seen."""
    declared: int
    of_users: int
    local: int


def judge(sockets: Iterable[Socket], listeners: Sequence[Declared], cluster: Cluster, node: Node) -> Verdict:
    """Compare what listens with what is declared to."""
    networks = {str(entry.address): entry.network for entry in node.addresses}
    wrong, unseen = [], []
    declared = of_users = local = 0
    for found in sockets:
        socket = _of_kernel(found, listeners)
        if socket.local:
            local += 1
        elif socket.of_user:
            of_users += 1
        elif not socket.programs:
            unseen.append(socket)
        elif (socket.protocol, socket.port) in DHCP:
            declared += 1
        elif (reason := _wrong(socket, listeners, cluster, networks)) is not None:
            wrong.append(reason)
        else:
            declared += 1
    return Verdict(tuple(dict.fromkeys(wrong)), tuple(unseen), declared, of_users, local)


def _of_kernel(socket: Socket, listeners: Sequence[Declared]) -> Socket:
    """A socket without a process counts as the kernel's where a kernel socket is declared: nfsd's has an inode.

    Seen on Debian 13 with Linux 6.12. Where none is declared, it may be that of a process that hides.
    """
    if socket.programs:
        return socket
    as_kernel = replace(socket, programs=(KERNEL,))
    return as_kernel if any(_fits(as_kernel, one.listener) for one in listeners) else socket


def _wrong(
    socket: Socket, listeners: Sequence[Declared], cluster: Cluster, networks: Mapping[str, str]
) -> str | None:
    """Why a socket is not as declared; None where it is.

    On every address it is on every network, where the rules keep away whom it is not declared for.
    """
    known = [one.listener for one in listeners if _fits(socket, one.listener)]
    if not known:
        return f"nothing declares {socket}"
    name = networks.get(str(socket.address))
    if name is None or any(cluster.networks[name].purpose in one.purposes for one in known):
        return None
    purposes = (
        " and ".join(sorted({purpose for one in known for purpose in one.purposes})) or "the node itself"
    )
    return f"{socket}: that is the network {name}, and it is declared for {purposes} alone"


def _fits(socket: Socket, listener: Listener) -> bool:
    """Children share what their parent opened: jobs inherit sockets of slurmstepd."""
    first, last = listener.ports
    return (
        listener.protocol == socket.protocol
        and first <= socket.port <= last
        and any(_named(program, listener.program) for program in socket.programs)
    )


def _named(program: str, declared: str) -> bool:
    return program.startswith(declared[:-1]) if declared.endswith("*") else program == declared
