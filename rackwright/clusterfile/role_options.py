"""Options of every role on every node: the section under `roles:` with a group's overrides merged in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from rackwright.clusterfile.groups import Group
from rackwright.clusterfile.report import Report
from rackwright.clusterfile.sections import data_path, note_errors
from rackwright.documents.document import DataPath
from rackwright.documents.nearest import short, suggest
from rackwright.documents.yaml_data import Data
from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.types import NodeRole

Trouble = tuple[str, str, str | None]
"""Path below the role's section, a full sentence, a hint."""


@dataclass(frozen=True)
class Resolved:
    """One distinct set of options of a role and the group whose overrides it has, if any."""

    role: str
    options: RoleOptions
    override: DataPath | None
    """Path of the group's overrides of this role; None for the section alone."""

    def place(self, report: Report, below: DataPath) -> DataPath:
        """Path of a value of these options: in the overrides if set there, else in the section."""
        if self.override is not None and _overrides(report, self.override, below):
            return self.override + below
        return ("roles", self.role, *below)


class RoleOptionsReader:
    """Reads each section once and each distinct override once."""

    def __init__(self, report: Report, sections: dict[str, Data]) -> None:
        self._report = report
        self._roles = report.roles
        self._sections: dict[str, dict[str, Data]] = {}
        self._base: dict[str, Resolved] = {}
        self._merged: dict[tuple[str, str], Resolved | None] = {}
        for role, section in sections.items():
            self._read_section(role, section)

    @property
    def sections(self) -> dict[str, RoleOptions]:
        """Options of each role from its section."""
        return {role: resolved.options for role, resolved in self._base.items()}

    def for_group(self, group: Group) -> dict[str, RoleOptions]:
        """Options of every role, as the nodes of a group have them where it runs."""
        overrides = group.entry.options
        self._check_overrides(group)
        found: dict[str, RoleOptions] = {}
        for role in self._sections:
            if group.roles.isdisjoint(self._roles.options_class(role).applies_to):
                continue
            if role in overrides and self._report.clean((*group.path, "options", role)):
                resolved = self._merge(role, overrides[role], (*group.path, "options", role))
            else:
                resolved = self._base.get(role)
            if resolved is not None:
                found[role] = resolved.options
        return found

    def check_held(self, groups: list[Group]) -> None:
        """Note sections of roles that no node holds."""
        held = {role for group in groups for role in group.roles}
        if not groups or not all(group.roles for group in groups):
            return
        for role in self._sections:
            kinds = self._roles.options_class(role).applies_to
            if held.isdisjoint(kinds) and kinds != {NodeRole.HEAD}:  # a missing head is noted already
                words = " or ".join(sorted(kinds))
                self._report.add(
                    ("roles", role),
                    f"The role {role} runs on {words} nodes, but the cluster has none.",
                    "remove the section or give a node that role",
                    key=True,
                )

    def check_against(self, cluster: Cluster) -> None:
        """Note what the roles find wrong with their options in this cluster."""
        for resolved, (where, message, hint) in self._asked(lambda options: options.problems(cluster)):
            self._report.add(resolved.place(self._report, parse_path(where)), message, hint)

    def warn_about(self, cluster: Cluster) -> None:
        """Note the roles' warnings; a warning of several roles, e.g. about the lock, once."""
        found: dict[tuple[str, str | None], list[DataPath]] = {}
        for resolved, (where, message, hint) in self._asked(lambda options: options.warnings(cluster)):
            found.setdefault((message, hint), []).append(resolved.place(self._report, parse_path(where)))
        for (message, hint), places in found.items():
            roles = {place[1] for place in places if place[0] == "roles"}
            self._report.warn(("gpu_stack",) if len(roles) > 1 else places[0], message, hint)

    def check_lock(self, cluster: Cluster) -> None:
        """Note what the roles find wrong with the lock; a finding of several roles, e.g. a missing lock, once."""
        missing = not cluster.lock_path.exists()
        if len(self._report) and not missing:
            return  # it may not fit the file because of the mistakes noted already
        found: dict[tuple[str, str | None], list[DataPath]] = {}
        for resolved, (where, message, hint) in self._asked(lambda options: options.lock_problems(cluster)):
            place = resolved.place(self._report, parse_path(where))
            if where:  # a mistake in an option, e.g. a key file that is not there
                self._report.add(place, message, hint)
            else:
                found.setdefault((message, hint), []).append(place)
        mistakes = len(self._report) > 0
        for (message, hint), places in found.items():
            shared = cluster.gpu_stack is not None and (missing or len(places) > 1)
            then = f"correct the mistakes above, then {hint}" if mistakes and hint is not None else hint
            self._report.add_last(("gpu_stack",) if shared else places[0], message, then)

    def _asked(self, ask: Callable[[RoleOptions], Iterable[Trouble]]) -> Iterator[tuple[Resolved, Trouble]]:
        """Each answer of each distinct set of options."""
        wrong_already = len(self._report) > 0
        for resolved in (*self._base.values(), *filter(None, self._merged.values())):
            try:
                found = list(ask(resolved.options))
            except Exception:
                if wrong_already:
                    continue  # it failed on a mistake noted already, e.g. no management network
                raise
            for trouble in found:
                yield resolved, trouble

    def _read_section(self, role: str, section: Data) -> None:
        path: DataPath = ("roles", role)
        if role not in self._roles.names:
            if self._report.clean(path):  # else it is a role of the site that could not be loaded
                hint = suggest(role, self._roles.names, what="roles")
                self._report.add(path, f"Role {short(role)} does not exist.", hint, key=True)
            return
        if section is not None and not isinstance(section, dict):
            self._report.add(path, "Expected a mapping.", "write `{}` to use the defaults")
            return
        raw = section or {}
        self._sections[role] = raw
        kind = self._roles.options_class(role)
        try:
            self._base[role] = Resolved(role, kind.model_validate(raw), None)
        except ValidationError as error:
            note_errors(self._report, kind, raw, path, error.errors(include_url=False))

    def _check_overrides(self, group: Group) -> None:
        for role in group.entry.options:
            path = (*group.path, "options", role)
            if role not in self._sections:
                if self._report.clean(("roles", role)):
                    self._report.add(
                        path,
                        f"The role {short(role)} has no section under `roles`, so it runs nowhere.",
                        suggest(role, self._sections, what="sections"),
                        key=True,
                    )
            elif group.roles and group.roles.isdisjoint(self._roles.options_class(role).applies_to):
                words = " or ".join(sorted(self._roles.options_class(role).applies_to))
                self._report.add(path, f"The role {role} runs only on {words} nodes.", key=True)

    def _merge(self, role: str, override: dict[str, Data], path: DataPath) -> Resolved | None:
        key = (role, json.dumps(override, sort_keys=True, default=str))
        if key not in self._merged:
            self._merged[key] = self._validate(role, override, path)
        return self._merged[key]

    def _validate(self, role: str, override: dict[str, Data], path: DataPath) -> Resolved | None:
        kind = self._roles.options_class(role)
        merged = deep_merge(self._sections[role], override)
        try:
            return Resolved(role, kind.model_validate(merged), path)
        except ValidationError as error:
            errors = error.errors(include_url=False)
        inside = [item for item in errors if _overrides(self._report, path, data_path(merged, item))]
        if inside:
            note_errors(self._report, kind, merged, path, inside)
        elif role in self._base:  # valid without the overrides, so they are the mistake
            note_errors(self._report, kind, {}, path, errors)
        return None


def deep_merge(base: dict[str, Data], override: dict[str, Data]) -> dict[str, Data]:
    """`override` over `base`: mappings are merged key by key, everything else is replaced."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        merged[key] = (
            deep_merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return merged


def parse_path(text: str) -> DataPath:
    """`partitions[0].nodes` as a path."""
    return tuple(_path_parts(text))


def _path_parts(text: str) -> Iterator[str | int]:
    for part in text.replace("[", ".[").split("."):
        if part.startswith("[") and part.endswith("]"):
            inside = part[1:-1]
            yield int(inside) if inside.isdigit() else inside.strip("\"'")
        elif part:
            yield part


def _overrides(report: Report, override: DataPath, below: DataPath) -> bool:
    """Whether a group's overrides hold a value at this path, or replace the list around it."""
    value = report.document.value(override)
    for part in below:
        if isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return isinstance(value, list)
    return True
