"""Membership of a node in a Kubernetes cluster, and images that a node has without a registry."""

from __future__ import annotations

from collections.abc import Callable, Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.facts.settings import Answer
from rackwright.operations import archives, files
from rackwright.operations.settings import setting
from rackwright.plan.changes import Change, record


@operation()
def member(
    target: str, read: str, want: str, write: str, credentials: Callable[[], str]
) -> Generator[StringCommand, None, None]:
    """The node belongs to the cluster: `read` prints `want`.

    + write: shell that joins it; the credentials, made when it runs, come by its standard input
    """
    there: str | None = host.get_fact(Answer, read=read)
    if there == want:
        host.noop(f"{target}: {want}")
        return
    record(Change("setting", target, there, want))
    yield StringCommand(write, _stdin=credentials() if state.is_executing else "")


def image_archive(reference: str, url: str, sha256: str) -> None:
    """containerd has this image for pods, from an archive that the site serves."""
    folder = "/var/lib/rackwright/images"
    path = f"{folder}/{sha256[:16]}.tar"
    files.directory(name="Create the folder for image archives", path=folder, mode="700")
    archives.download(name=f"Fetch the image {reference}", path=path, url=url, sha256=sha256)
    setting(
        name=f"Import the image {reference}",
        target=f"image {reference}",
        read=f"ctr -n k8s.io images ls -q 'name=={reference}'",
        want=reference,
        write=f"ctr -n k8s.io images import {quote(path)}",
    )
