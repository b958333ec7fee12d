"""Membership of a node in a Kubernetes cluster, and images that a node has without a registry."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from shlex import quote
from typing import Protocol

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


class Archived(Protocol):
    """An image as an archive that the site serves."""

    @property
    def reference(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def sha256(self) -> str: ...


def image_archives(images: Iterable[Archived]) -> None:
    """containerd has these images for pods."""
    folder = "/var/lib/rackwright/images"
    files.directory(name="Create the folder for image archives", path=folder, mode="700")
    for image in host.loop(list(images)):  # type: ignore[no-untyped-call]
        path = f"{folder}/{image.sha256[:16]}.tar"
        archives.download(
            name=f"Fetch the image {image.reference}", path=path, url=image.url, sha256=image.sha256
        )
        setting(
            name=f"Import the image {image.reference}",
            target=f"image {image.reference}",
            read=f"ctr -n k8s.io images ls -q 'name=={image.reference}'",
            want=image.reference,
            write=f"ctr -n k8s.io images import {quote(path)}",
        )
