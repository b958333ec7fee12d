"""Caches of what pyinfra computes anew for every operation, fact or plan.

Measured on forty operations without a change: the type hints of its global arguments and the search
for each of the thirty of them in six layers of host data take three quarters of an evaluation. To find
its connectors it reads the metadata of every installed package, twice per plan: some 40 ms.
None of it changes while a process lives.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from pyinfra.api import arguments, connectors, facts
from pyinfra.api.host import Host, HostData


@cache
def _global_arguments() -> tuple[tuple[str, type], ...]:
    return tuple(_computed())


_computed = arguments.all_global_arguments


_entry_points = cache(entry_points)


def install_caches() -> None:
    """Replace pyinfra's `all_global_arguments` and its search for connectors by cached ones."""
    connectors.entry_points = _entry_points  # type: ignore[attr-defined]
    arguments.all_global_arguments = _global_arguments  # type: ignore[assignment]
    facts.all_global_arguments = _global_arguments  # type: ignore[assignment, attr-defined]


class FlatData(HostData):
    """A host's data in one layer, and the deploy's defaults below: hosts of the engine have no others."""

    def __init__(self, host: Host, data: dict[str, Any]) -> None:
        super().__init__(host, data, host.get_deploy_data)
        self.__dict__["own"] = data

    def __getattr__(self, key: str) -> Any:  # noqa: ANN401 - any declared type
        if key in self.own and key not in self.override_datas:
            return self.own[key]  # not a copy, as pyinfra's would be: it is frozen or a plain value
        if self.override_datas or self.host.get_deploy_data():
            return super().__getattr__(key)
        raise AttributeError(key)  # what pyinfra asks of most keys, most of the time
