"""Debian trees for the build, and commands that run in them: idle priority, bounded, all in one control group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rackwright.lab import sources
from rackwright.lab.process import joined, run

_TREE_SECONDS = 1800
_ENTER = """\
root=$1; command=$2
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
if [ -e /etc/resolv.conf ]; then
    rm -f "$root/etc/resolv.conf"
    cat /etc/resolv.conf >"$root/etc/resolv.conf"
fi
exec chroot "$root" /usr/bin/env -i PATH=/usr/lib/go/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    ${http_proxy+"http_proxy=$http_proxy"} ${https_proxy+"https_proxy=$https_proxy"} sh -ec "$command" </dev/null
"""
_NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child=KILL")
_IDLE = ("nice", "-n", "19", "ionice", "-c", "3")


class Builder:
    """Runs what a build consists of, in its control group."""

    def __init__(self, groups: Sequence[Path]) -> None:
        self._groups = groups

    def run(self, argv: Sequence[str], timeout: float, shown: str | None = None) -> str:
        """A program of this machine, and its output."""
        return run(joined([*_IDLE, *argv], self._groups), timeout=timeout, shown=shown).stdout

    def make(
        self, tree: Path, suite: str, packages: Sequence[str], lines: Sequence[str], options: Sequence[str]
    ) -> None:
        """A minimal Debian tree with these packages."""
        argv = ["mmdebstrap", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}"]
        argv += [f"--aptopt={option}" for option in ('APT::Install-Recommends "false"', *_proxy(), *options)]
        argv += [suite, str(tree), *lines]
        self.run(["unshare", "--mount", *argv], _TREE_SECONDS)

    def inside(self, tree: Path, command: str, timeout: float, shown: str | None = None) -> str:
        """Shell in a tree, in namespaces that end with it, and its output."""
        argv = ["unshare", *_NAMESPACES, "sh", "-ec", _ENTER, "enter", str(tree), command]
        return self.run(argv, timeout, shown)


def _proxy() -> list[str]:
    proxy = sources.apt_setting("Acquire::http::Proxy")
    return [] if proxy is None else [f'Acquire::http::Proxy "{proxy}"']
