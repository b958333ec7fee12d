"""Applies the software role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages
from rackwright.osfamily.names import names
from rackwright.roles.software import texts
from rackwright.roles.software.options import SoftwareOptions


@deploy("software")
def software(options: SoftwareOptions) -> None:
    """Lmod and its list of trees; the site maintains the trees themselves."""
    node = site_of().node
    packages.installed(name="Install Lmod", packages=names(node.family, "lmod").packages)
    if options.spider_cache is not None:
        files.directory(name="Create /etc/rackwright", path="/etc/rackwright")
    for path, content in host.loop(texts.files(node, options).items()):  # type: ignore[no-untyped-call]
        if content is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(name=f"Write {path}", path=path, content=content)
