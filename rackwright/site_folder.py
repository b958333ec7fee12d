"""The folder of a cluster file, and what a site keeps beside it: its own roles, templates, deploy and checks.

    cluster.yaml
    roles/motd/{__init__,options,deploy,verify}.py   as the shipped roles; imported as `roles.motd...`
    templates/motd/motd.j2
    deploys/site.py                                  the order; calls `shipped_roles()` of rackwright.shipped
    checks/test_*.py                                 plain pytest with testinfra's `host`

Python has one module named `roles` in a process: a process serves one site, that of the cluster file it loaded last.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

PACKAGE = "roles"
"""The package that a site's roles are imported from."""
DEPLOY = Path("deploys/site.py")
_SHIPPED_ROLES = (Path(__file__).resolve().parent / PACKAGE).resolve()
_SOURCES = (".py", ".j2", ".yaml")


@dataclass(frozen=True)
class SiteFolder:
    """What is there; each name of a role once, sorted."""

    path: Path
    """Absolute."""
    roles: tuple[str, ...] = ()
    deploy: Path | None = None
    """The deploy that the site runs instead of the shipped one; None: it has none."""
    checks: tuple[Path, ...] = ()
    """Files of tests."""

    @property
    def roles_folder(self) -> Path:
        """Where its roles are, whether it has any or not."""
        return self.path / PACKAGE

    @property
    def templates(self) -> Path:
        """Where its templates are, whether it has any or not."""
        return self.path / "templates"

    def sources(self) -> Iterator[Path]:
        """Every file that an evaluation of a node may depend on, its checks left out."""
        if self.deploy is not None:
            yield self.deploy
        for folder in (self.roles_folder, self.templates) if self.roles else ():
            yield from sorted(
                path for path in folder.rglob("*") if path.suffix in _SOURCES and path.is_file()
            )


def site_folder(cluster_file: Path) -> SiteFolder:
    """What is beside a cluster file. A folder in `roles/` is a role when it has an `options.py`."""
    folder = cluster_file.absolute().parent
    if (folder / PACKAGE).resolve() == _SHIPPED_ROLES:
        return SiteFolder(
            folder
        )  # the root of a checkout of rackwright: its roles and deploy are the shipped ones
    deploy = folder / DEPLOY
    return SiteFolder(
        folder,
        tuple(sorted(path.parent.name for path in folder.glob(f"{PACKAGE}/*/options.py"))),
        deploy if deploy.is_file() else None,
        tuple(sorted(folder.glob("checks/**/test_*.py"))),
    )


def open_to_others(folder: Path, cluster_file: Path) -> str | None:
    """Why code in a folder must not be run for the owner of the cluster file; None: it may.

    A cluster file in a folder that everyone may write to, such as /tmp, must not run what another user put there.
    """
    found, owner = folder.stat(), cluster_file.stat().st_uid
    if found.st_uid not in (owner, 0):
        return f"{folder} belongs to another user (uid {found.st_uid}) than the cluster file (uid {owner})"
    if found.st_mode & stat.S_IWOTH:
        return f"every user may write to {folder} (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def serve(site: SiteFolder) -> None:
    """Make a site's roles importable as `roles.NAME`, in place of another site's."""
    wanted = [str(site.roles_folder)]
    present = sys.modules.get(PACKAGE)
    if present is not None and list(getattr(present, "__path__", ())) == wanted:
        return
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    package = ModuleType(PACKAGE, "The roles of a site.")
    package.__path__ = wanted
    sys.modules[PACKAGE] = package
    _served[:] = [site]


def served() -> SiteFolder | None:
    """The site whose roles and templates are used in this process; None: no role of a site was loaded."""
    return _served[0] if _served else None


_served: list[SiteFolder] = []
