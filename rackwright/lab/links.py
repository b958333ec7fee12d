"""Namespaces and interfaces, created and removed with iproute2."""

from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import names
from rackwright.lab.process import run

TIMEOUT = 30


def exists(namespace: str) -> bool:
    """Whether a named namespace exists."""
    return (names.NETNS / namespace).exists()


def remove_link(rack: str, link: str) -> None:
    """Delete an interface of the rack's namespace if it is there."""
    if has_link(names.namespace(rack), link):
        run(["ip", "-n", names.namespace(rack), "link", "delete", link], timeout=TIMEOUT)


def make_namespace(namespace: str) -> None:
    """Make a named namespace, if it is not there."""
    path = names.NETNS / namespace
    if path.exists() and path.stat().st_dev != Path("/proc/self/ns/net").stat().st_dev:
        path.unlink()  # `ip netns add` was killed between making the file and mounting on it
    if not path.exists():
        run(["ip", "netns", "add", namespace], timeout=TIMEOUT)


def has_link(namespace: str, link: str) -> bool:
    """Whether a namespace has an interface of this name."""
    return run(["ip", "-n", namespace, "link", "show", link], timeout=TIMEOUT, check=False).returncode == 0


def batch(namespace: str, *lines: str) -> None:
    """Run steps of `ip` in a namespace: one process, which stops at the first that fails and names it."""
    text = "".join(f"{line}\n" for line in lines)
    try:
        run(["ip", "-n", namespace, "-batch", "-"], timeout=TIMEOUT, stdin=text)
    except LabError as error:
        raise LabError(f"{error.message}\nsteps in {namespace}:\n{text.rstrip()}") from None
