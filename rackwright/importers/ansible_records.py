"""Each node of an inventory: variables by Ansible's precedence, and roles by the names of groups."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address

from rackwright.importers.columns import field_of_variable
from rackwright.importers.inventory import Encrypted, Inventory, Variable, Variables
from rackwright.importers.names import split_host_name
from rackwright.importers.records import Cell, Field, Record, Setting, Source, quoted
from rackwright.importers.words import IGNORE, RoleNames, is_controller, role_of

_JINJA = re.compile(r"\{\{|\{%|\{#")
_SETTINGS: Mapping[str, Setting] = {
    "ansible_user": "user",
    "ansible_ssh_user": "user",
    "ansible_port": "port",
    "ansible_ssh_port": "port",
    "ansible_ssh_private_key_file": "key",
    "ansible_private_key_file": "key",
    "slurm_cluster_name": "cluster",
}
_ADDRESS = ("ansible_host", "ansible_ssh_host")
_SSH_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
_NEEDLESS = frozenset(
    ("ansible_become", "ansible_become_method", "ansible_become_user", "ansible_connection")
)
_DOMAINS = ("dns_domain", "domain_name")


def records(
    source: Source,
    inventory: Inventory,
    by_group: Mapping[str, Sequence[Variables]],
    by_host: Mapping[str, Sequence[Variables]],
    given: RoleNames,
) -> None:
    """Add a record for each host, and what is ignored; and hosts that are not nodes."""
    depths, members = inventory.depths(), inventory.members()
    source.mistakes += inventory.mistakes
    source.ignored += inventory.ignored
    if source.mistakes:
        return
    controllers = {host for host, groups in members.items() if any(is_controller(name) for name in groups)}
    ignored = _Ignored()
    for host, (where, own) in inventory.hosts.items():
        groups = sorted(members[host], key=lambda name: (depths[name], name))
        roles = {role for name in groups if (role := role_of(name, given)) is not None}
        if roles and roles <= {IGNORE}:
            source.ignored.append(
                f"{where}: {quoted(host)} of {', '.join(groups)} is not a node of the cluster"
            )
            continue
        variables = _merged(inventory, groups, by_group, own, by_host.get(host, ()))
        record = _record(host, where, variables, ignored)
        record.roles = frozenset(roles - {IGNORE})
        if not record.roles:
            named = ", ".join(groups[:6]) or "no group"
            record.notes["roles"] = f"in {named}, which rackwright has no role for"
        record.primary = controllers == {host}
        source.records.append(record)
    source.ignored += ignored.lines()


def _merged(
    inventory: Inventory,
    groups: Sequence[str],
    by_group: Mapping[str, Sequence[Variables]],
    own: Variables,
    of_host: Sequence[Variables],
) -> Variables:
    """A host's variables: of the inventory's groups, of group_vars, of the host's line, of host_vars; later ones win."""
    found: Variables = {}
    ordered = ("all", *groups)
    for name in ordered:
        if name in inventory.groups:
            found |= inventory.groups[name].variables
    for name in ordered:
        for variables in by_group.get(name, ()):
            found |= variables
    found |= own
    for variables in of_host:
        found |= variables
    return found


class _Ignored:
    """Variables that were read and have no place, by the place that has them."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}
        self._special: dict[str, None] = {}

    def note(self, name: str, variable: Variable) -> None:
        """A variable that a cluster file has nothing of."""
        self._names.setdefault(variable.where.rpartition(":")[0], {})[name] = None

    def special(self, line: str) -> None:
        """One that cannot be read, with the reason."""
        self._special[line] = None

    def lines(self) -> list[str]:
        """A line for each file, and one for each that cannot be read."""
        plain = [
            f"{file}: {len(names)} variable{'' if len(names) == 1 else 's'} that a cluster file has nothing of: "
            f"{', '.join(quoted(name) for name in names)}"
            for file, names in self._names.items()
        ]
        return [*self._special, *plain]


def _record(host: str, where: str, variables: Variables, ignored: _Ignored) -> Record:
    record = Record(where, {"name": Cell(host, where)})
    for name, variable in variables.items():
        field, setting = _field(name), _SETTINGS.get(name)
        known = field is not None or setting is not None or name in _SSH_ARGUMENTS
        if not known:
            if name not in _NEEDLESS:
                ignored.note(name, variable)
            continue
        text = _text(name, variable, ignored)
        if text is None:
            if field is not None:
                record.notes[field] = f"{variable.where}: {name} cannot be read"
        elif name in _SSH_ARGUMENTS:
            _arguments(record, name, Cell(text, variable.where), ignored)
        elif setting is not None:
            record.settings[setting] = Cell(text, variable.where)
        elif field is not None:
            _put(record, field, name, Cell(text, variable.where), ignored)
    return record


def _field(name: str) -> Field | None:
    if name in _ADDRESS:
        return "address"
    return "domain" if name in _DOMAINS else field_of_variable(name)


def _put(record: Record, field: Field, name: str, cell: Cell, ignored: _Ignored) -> None:
    if field == "address" and not _is_address(cell.text):
        record.notes["address"] = f"{name} is {quoted(cell.text)}, a name, and names are not looked up"
        return
    if field in record.cells and record.cells[field].text != cell.text:
        other = record.cells[field]
        ignored.special(
            f"{cell.where}: `{name}`: {other.where} has another value of the same, which is taken"
        )
        return
    record.cells[field] = cell


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text.partition("/")[0])
    except AddressValueError:
        # what is neither a name nor an address is refused where addresses are read
        try:
            split_host_name(text)
        except ValueError:
            return True
        return text.replace(".", "").isdigit()
    return True


def _text(name: str, variable: Variable, ignored: _Ignored) -> str | None:
    """The value as text; None where it is encrypted, an expression, or not a single value."""
    value = variable.value
    if isinstance(value, Encrypted):
        ignored.special(f"{variable.where}: `{name}`: encrypted with Ansible Vault, not read")
    elif isinstance(value, str) and _JINJA.search(value):
        ignored.special(f"{variable.where}: `{name}`: a Jinja expression, which rackwright does not evaluate")
    elif isinstance(value, dict | list):
        ignored.special(f"{variable.where}: `{name}`: several values, where a cluster file has one")
    elif value is not None:
        return str(value).strip() or None
    return None


def _arguments(record: Record, name: str, cell: Cell, ignored: _Ignored) -> None:
    """ProxyJump out of arguments of ssh; everything else in them is ignored."""
    try:
        words = shlex.split(cell.text)
    except ValueError:
        ignored.special(f"{cell.where}: `{name}`: a quote is not closed")
        return
    rest, at = [], 0
    while at < len(words):
        word = words[at]
        after = words[at + 1] if at + 1 < len(words) else ""
        if word == "-J" or (word == "-o" and after.lower().startswith("proxyjump=")):
            record.settings["jump_host"] = Cell(
                after if word == "-J" else after.partition("=")[2], cell.where
            )
            at += 2
        elif word.lower().startswith("-oproxyjump="):
            record.settings["jump_host"] = Cell(word.partition("=")[2], cell.where)
            at += 1
        else:
            rest.append(word)
            at += 1
    if rest:
        ignored.special(f"{cell.where}: `{name}`: only ProxyJump is taken from arguments of ssh")
