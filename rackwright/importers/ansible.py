"""Ansible inventories: static files, with the group_vars and host_vars beside them. Ansible itself is not needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rackwright.errors import RackwrightError
from rackwright.importers.ansible_records import records
from rackwright.importers.inventory import Inventory, Variables
from rackwright.importers.inventory_ini import read_ini
from rackwright.importers.inventory_yaml import (
    VAULT,
    Lines,
    YamlMistake,
    read_yaml,
    read_yaml_inventory,
    variables_of,
)
from rackwright.importers.records import Source, read_text
from rackwright.importers.words import RoleNames

_YAML = (".yml", ".yaml", ".json")
_NOT_READ = (".pyc", ".pyo", ".orig", ".bak", ".ini~", ".cfg", ".retry", ".md", ".swp")
_VARIABLES = ("group_vars", "host_vars")
_STATIC = (
    "`ansible-inventory -i INVENTORY --list --yaml > static.yaml` prints what it finds; import static.yaml"
)


def read_ansible(path: Path, given: RoleNames) -> Source:
    """The nodes of an inventory, a file or a folder of them. Raises RackwrightError where it cannot be read.

    `given`: roles of groups from the command line.
    """
    source, inventory = Source("Ansible inventory"), Inventory()
    for file in _files(path):
        text = read_text(file)
        if os.access(file, os.X_OK) and text.startswith("#!"):
            raise RackwrightError(
                f"{file} is a dynamic inventory, a program; rackwright runs none.", hint=_STATIC
            )
        source.files.append(file.name)
        try:
            if text.startswith(VAULT):
                inventory.ignored.append(f"{file.name}: encrypted with Ansible Vault, not read")
            elif file.suffix in _YAML or text.lstrip().startswith(("---", "{")):
                read_yaml_inventory(text, file.name, inventory)
            else:
                read_ini(text, file.name, inventory)
        except YamlMistake as mistake:
            inventory.mistakes.append(str(mistake))
    folder = path if path.is_dir() else path.parent
    by_group = _variable_files(
        folder / "group_vars", source, inventory, frozenset((*inventory.groups, "all"))
    )
    by_host = _variable_files(folder / "host_vars", source, inventory, frozenset(inventory.hosts))
    records(source, inventory, by_group, by_host, given)
    if any("plugin" in one for one in inventory.mistakes):
        raise RackwrightError(" ".join(inventory.mistakes), hint=_STATIC)
    return source


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = [
        file
        for file in sorted(path.iterdir())
        if file.is_file() and not file.name.startswith(".") and file.suffix not in _NOT_READ
    ]
    if not files:
        raise RackwrightError(f"{path} has no inventory.", hint="name the inventory's file, or its folder")
    return files


def _variable_files(
    folder: Path, source: Source, inventory: Inventory, known: frozenset[str]
) -> dict[str, list[Variables]]:
    """Group or host to the variables of each of its files, in the order in which later ones win."""
    found: dict[str, list[Variables]] = {}
    for name, file in _named(folder):
        shown = str(file.relative_to(folder.parent))
        if name not in known:
            inventory.ignored.append(
                f"{shown}: of a {'group' if folder.name == 'group_vars' else 'host'} that the inventory does not have"
            )
            continue
        text = read_text(file)
        source.files.append(shown)
        if text.startswith(VAULT):
            inventory.ignored.append(f"{shown}: encrypted with Ansible Vault, not read")
            continue
        try:
            data = read_yaml(text, shown)
        except YamlMistake as mistake:
            inventory.mistakes.append(str(mistake))
            continue
        if isinstance(data, Lines):
            found.setdefault(name, []).append(variables_of(data, shown))
        elif data is not None:
            inventory.mistakes.append(f"{shown}: Expected variables, `name: value` lines.")
    return found


def _named(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of variables: `NAME`, `NAME.yml`, or all below the folder `NAME`."""
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name.endswith("~"):
            continue
        if entry.is_dir():
            yield from ((entry.name, file) for file in sorted(entry.rglob("*")) if _is_variables(file))
        elif _is_variables(entry):
            yield (entry.stem if entry.suffix in _YAML else entry.name), entry


def _is_variables(file: Path) -> bool:
    return file.is_file() and not file.name.startswith(".") and (file.suffix in _YAML or not file.suffix)
