"""root's access to registries: CA certificates and logins."""

from __future__ import annotations

from pyinfra.context import host

from rackwright.containers import PullingOptions
from rackwright.data import site_of
from rackwright.operations import files


def registry_files(options: PullingOptions, logins: str | None, content: str | None) -> None:
    """Certificates where the runtime looks for them, and root's file of logins where there are any.

    Of the cluster's own registries they are links to the site's CA. A file of logins is left alone where none is declared: root may have made it.
    """
    site = site_of()
    certificates = options.ca_files(site.cluster)
    links = options.trust_links(site.cluster, site.node)
    for path, text in host.loop(certificates.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make {path.rpartition('/')[0]}", path=path.rpartition("/")[0])
        files.file(name=f"Write {path}", path=path, content=text)
    for path, target in host.loop(links.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make {path.rpartition('/')[0]}", path=path.rpartition("/")[0])
        files.link(name=f"Link {path}", path=path, target=target)
    if logins is not None and content is not None:
        folder = logins.rpartition("/")[0]
        files.directory(name=f"Make {folder}", path=folder, mode="700")
        files.file(name=f"Write {logins}", path=logins, content=content, mode="600", sensitive=True)
