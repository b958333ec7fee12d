"""The roles that a cluster file may declare: one package each, with one options class.

Shipped roles are packages below `rackwright.roles`, those of a site below `roles` (rackwright.site_folder).
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from functools import cache

from rackwright.model.options import RoleOptions
from rackwright.site_folder import PACKAGE, SiteFolder, serve

_SHIPPED = "rackwright.roles"


class Roles:
    """The shipped roles and those of one site. A site's role that could not be loaded is not among them."""

    def __init__(self, site: SiteFolder | None = None) -> None:
        self.of_site: dict[str, type[RoleOptions]] = {}
        self._site = site

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the roles, sorted."""
        return tuple(sorted((*role_names(), *self.of_site)))

    def options_class(self, role: str) -> type[RoleOptions]:
        """The options class of a role."""
        return self.of_site.get(role) or options_class(role)

    def load(self, role: str) -> None:
        """Import the options of a role of the site. Raises what its module raises, and TypeError as `options_class`."""
        if self._site is not None:
            serve(self._site)
            self.of_site[role] = _options_class(f"{PACKAGE}.{role}.options")


def package_of(role: str) -> str:
    """The package of a role: `rackwright.roles.slurm`, or `roles.motd` of the site that was loaded last."""
    of_site = f"{PACKAGE}.{role}.options" in sys.modules
    return f"{PACKAGE if of_site else _SHIPPED}.{role}"


@cache
def role_names() -> tuple[str, ...]:
    """Names of the shipped roles, sorted."""
    package = importlib.import_module(_SHIPPED)
    names = (entry.name for entry in pkgutil.iter_modules(package.__path__) if entry.ispkg)
    return tuple(sorted(name for name in names if _has_options(name)))


@cache
def options_class(role: str) -> type[RoleOptions]:
    """The options class of a shipped role: the one subclass of RoleOptions its options module defines.

    Raises TypeError when the module defines none or several: a mistake of the role's author.
    """
    return _options_class(f"{_SHIPPED}.{role}.options")


def _options_class(name: str) -> type[RoleOptions]:
    module = importlib.import_module(name)
    found = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, RoleOptions) and thing.__module__ == name
    ]
    if len(found) != 1:
        raise TypeError(f"{name} defines {len(found)} subclasses of RoleOptions, not one.")
    return found[0]


def _has_options(role: str) -> bool:
    return importlib.util.find_spec(f"{_SHIPPED}.{role}.options") is not None
