"""The roles that exist: one package per role, one options class in each."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from functools import cache

from rackwright.model.options import RoleOptions

_PACKAGE = "rackwright.roles"


@cache
def role_names() -> tuple[str, ...]:
    """Names of the roles that ship an options module, sorted."""
    package = importlib.import_module(_PACKAGE)
    names = (entry.name for entry in pkgutil.iter_modules(package.__path__) if entry.ispkg)
    return tuple(sorted(name for name in names if _has_options(name)))


@cache
def options_class(role: str) -> type[RoleOptions]:
    """The options class of a role: the one subclass of RoleOptions its options module defines.

    Raises TypeError when the module defines none or several: a mistake of the role's author.
    """
    module = importlib.import_module(f"{_PACKAGE}.{role}.options")
    found = [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, RoleOptions) and thing.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} defines {len(found)} subclasses of RoleOptions, not one.")
    return found[0]


def _has_options(role: str) -> bool:
    return importlib.util.find_spec(f"{_PACKAGE}.{role}.options") is not None
