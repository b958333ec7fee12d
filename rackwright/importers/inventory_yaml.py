"""Ansible's YAML: inventories and files of variables, with lines, without running or decrypting anything."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from rackwright.importers.inventory import Encrypted, Inventory, Variable, Variables
from rackwright.importers.records import quoted

VAULT = "$ANSIBLE_VAULT;"
_DEPTH = 100


class Lines(dict[Any, Any]):
    """A mapping that knows the line of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[Hashable, int] = {}


class YamlMistake(ValueError):  # noqa: N818 - a mistake in a file
    """A file is not YAML that an inventory may have; a full sentence with file and line."""


class _Loader(yaml.SafeLoader):
    """Safe, with Ansible's tags: `!vault` is a placeholder, `!unsafe` is text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Lines:
        found = Lines()
        own = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        twice = next((key for index, key in enumerate(own) if key in own[:index]), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {quoted(twice)} is there twice", node.start_mark
            )
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, "a key is a list", key_node.start_mark)
            found[key] = self.construct_object(value_node, deep=True)
            found.lines[key] = key_node.start_mark.line + 1
        return found


def _vault(loader: _Loader, node: yaml.Node) -> Encrypted:
    return Encrypted()


def _unsafe(loader: _Loader, node: yaml.Node) -> object:
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_mapping)
for _tag in ("!vault", "!vault-encrypted"):
    _Loader.add_constructor(_tag, _vault)
_Loader.add_constructor("!unsafe", _unsafe)


def read_yaml(text: str, file: str) -> object:
    """The data of a file. Raises YamlMistake."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise YamlMistake(
            f"{file}{line}: This is not YAML: {error.problem or 'it cannot be read'}."
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise YamlMistake(f"{file}: This is not YAML: {str(error).splitlines()[0]}.") from None


def read_yaml_inventory(text: str, file: str, into: Inventory) -> None:
    """Add the hosts, groups and variables of a YAML inventory; mistakes are noted with their line."""
    data = read_yaml(text, file)
    if not isinstance(data, Lines):
        into.mistakes.append(f"{file}: Expected groups, e.g. `all: {{hosts: {{node1: }}}}`.")
        return
    if "plugin" in data:
        into.mistakes.append(f"{file}: It configures an inventory plugin, which rackwright does not run.")
        return
    for name in data:
        _group(into, str(name), data[name], f"{file}:{data.lines[name]}", file, 0)


def variables_of(data: Lines, file: str) -> Variables:
    """A mapping's entries as variables, each with its line."""
    return {str(key): Variable(value, f"{file}:{data.lines[key]}") for key, value in data.items()}


def _group(into: Inventory, name: str, data: object, where: str, file: str, depth: int) -> None:
    group = into.group(name)
    if depth > _DEPTH:
        into.mistakes.append(f"{where}: Groups are nested more than {_DEPTH} deep.")
        return
    if data is None:
        return
    if not isinstance(data, Lines):
        into.mistakes.append(
            f"{where}: The group {quoted(name)} is not a mapping of hosts, vars and children."
        )
        return
    for key, value in data.items():
        place = f"{file}:{data.lines[key]}"
        if key not in ("hosts", "vars", "children"):
            into.ignored.append(
                f"{place}: {quoted(str(key))} of the group {quoted(name)}: not hosts, vars or children"
            )
        elif value is not None and not isinstance(value, Lines):
            if key == "hosts" and isinstance(value, str):
                into.add_hosts(value, name, {}, place)
            else:
                into.mistakes.append(f"{place}: `{key}` of the group {quoted(name)} is not a mapping.")
        elif key == "vars" and value:
            group.variables |= variables_of(value, file)
        elif key == "hosts" and value:
            _hosts(into, name, value, file)
        elif key == "children" and value:
            for child, inner in value.items():
                group.children.setdefault(str(child), f"{file}:{value.lines[child]}")
                _group(into, str(child), inner, f"{file}:{value.lines[child]}", file, depth + 1)


def _hosts(into: Inventory, group: str, hosts: Lines, file: str) -> None:
    for pattern, own in hosts.items():
        where = f"{file}:{hosts.lines[pattern]}"
        if own is not None and not isinstance(own, Lines):
            into.mistakes.append(f"{where}: The variables of {quoted(str(pattern))} are not a mapping.")
            continue
        into.add_hosts(str(pattern), group, variables_of(own, file) if own else {}, where)
