"""What lets root reach the declared registries: certificates of their authorities, and logins."""

from __future__ import annotations

from pyinfra.context import host

from rackwright.containers import PullingOptions
from rackwright.data import site_of
from rackwright.operations import files


def registry_files(options: PullingOptions, logins: str | None, content: str | None) -> None:
    """Certificates where the runtime looks for them, and root's file of logins where there are any.

    A file of logins is left alone where none is declared: root may have made it.
    """
    certificates = options.ca_files(site_of().cluster)
    for path, text in host.loop(certificates.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make {path.rpartition('/')[0]}", path=path.rpartition("/")[0])
        files.file(name=f"Write {path}", path=path, content=text)
    if logins is not None and content is not None:
        folder = logins.rpartition("/")[0]
        files.directory(name=f"Make {folder}", path=folder, mode="700")
        files.file(name=f"Write {logins}", path=logins, content=content, mode="600", sensitive=True)
