"""Files of the software role: shared by the deploy and its checks."""

from __future__ import annotations

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.roles.software.options import SoftwareOptions

PROFILE = "/etc/profile.d/01-rackwright-modules.sh"
"""Read after EPEL's 00-modulepath.sh, which sets MODULEPATH where it is empty, and before the scripts that start Lmod:
Debian's lmod.sh (Lmod 8.6.19), EPEL's z00_lmod.sh."""
LMODRC = "/etc/rackwright/lmodrc.lua"


def profile(node: Node, options: SoftwareOptions) -> str:
    """PROFILE."""
    return render(
        "software/modules.sh.j2",
        trees=options.trees(node),
        cache=options.cache,
        lmodrc=LMODRC if options.spider_cache is not None else None,
    )


def lmodrc(options: SoftwareOptions) -> str | None:
    """LMODRC; None: the site keeps no cache."""
    return (
        None if options.spider_cache is None else render("software/lmodrc.lua.j2", cache=options.spider_cache)
    )


def files(node: Node, options: SoftwareOptions) -> dict[str, str | None]:
    """Each file by path; None for what must not exist."""
    return {PROFILE: profile(node, options), LMODRC: lmodrc(options)}
