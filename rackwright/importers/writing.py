"""The text of a cluster file: what is missing has a line with an empty value and a comment with an example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from rackwright.documents.nearest import short
from rackwright.importers.drafting import Draft, Value
from rackwright.importers.folding import Folded, Rule
from rackwright.importers.records import Field
from rackwright.importers.subnets import Subnet, free_runs
from rackwright.importers.words import near_skus
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import RELEASES

MARK = "# MISSING:"
_PLAIN = re.compile(r"[a-z][a-z0-9.-]*(\[\d+-\d+\])?[a-z0-9-]*")
_NOT_TEXT = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "inf", "nan"])
_SHARED: tuple[Field, ...] = ("os", "sku")
_EXAMPLES = {"os": next(iter(RELEASES)), "roles": "[worker]"}


@dataclass(frozen=True)
class Written:
    """The text of a cluster file and what it lacks."""

    text: str
    missing: int
    """Lines that are marked, each of which `rackwright validate` reports as one mistake."""


def write(draft: Draft) -> Written:
    """The cluster file of a draft."""
    lines = [*_head(draft), *_networks(draft), *_ssh(draft), *_nodes(draft), *_roles()]
    text = "\n".join(lines) + "\n"
    return Written(text, text.count(MARK))


def scalar(text: str) -> str:
    """A text as YAML has it: in quotes wherever it could be read as anything but this text."""
    if _PLAIN.fullmatch(text) and text not in _NOT_TEXT:
        return text
    return json.dumps(text)


def missing(what: str, example: str, why: str = "") -> str:
    """The comment of a line whose value is missing."""
    reason = f"{_comment(why)}; " if why else ""
    return f"{MARK} {what}; {reason}e.g. `{example}`"


def _comment(text: str) -> str:
    return short(text) if len(text) <= 60 else "".join(one for one in text if one.isprintable())


def _value(key: str, value: Value, what: str, example: str, empty: str = "") -> str:
    if value.text is None:
        return f"  {key}:{empty} {missing(what, example, value.note)}"
    note = f" # {_comment(value.note)}" if value.note else ""
    return f"  {key}: {scalar(value.text)}{note}"


def _head(draft: Draft) -> Iterator[str]:
    yield f"# Imported by rackwright from {_comment(draft.what)}: {_comment(', '.join(draft.files))}"
    yield "# A line marked MISSING needs a value; `rackwright validate` lists them all."
    yield "version: 1"
    yield ""
    yield "cluster:"
    yield _value("name", draft.name, "name of the cluster", "gpu-west")
    yield _value("domain", draft.domain, "DNS domain of the nodes", "hpc.example.com")
    yield ""
    yield "defaults:"
    for key in _SHARED:
        shared = draft.shared(key)
        if shared is not None:
            yield f"  {key}: {scalar(shared)}"
        elif _is_missing_everywhere(draft, key):
            yield f'  {key}: "" {_missing_of_nodes(draft, key)}'
    yield "  platform: bare-metal"
    yield ""


def _is_missing_everywhere(draft: Draft, key: Field) -> bool:
    """Whether one line in `defaults` is all that a key needs: no node has it, nor a reason that others lack."""
    reasons = {node.missing.get(key) for node in draft.nodes}
    return len(reasons) == 1 and all(getattr(node, key) is None for node in draft.nodes)


def _missing_of_nodes(draft: Draft, key: Field) -> str:
    first = draft.nodes[0]
    return _missing_key(key, first.missing.get(key, ""), first.suggested_sku)


def _missing_key(key: str, why: str, suggested_sku: str | None) -> str:
    if key == "sku":
        return missing("SKU of the nodes, see `rackwright catalog`", suggested_sku or near_skus("")[0], why)
    what = "operating system of the nodes" if key == "os" else "what the nodes are for"
    return missing(what, _EXAMPLES[key], why)


def _networks(draft: Draft) -> Iterator[str]:
    yield "networks:"
    yield from _network("management", "management", draft.management)
    if draft.bmc is not None:
        yield from _network("bmc", "bmc", draft.bmc)
    yield ""


def _network(name: str, purpose: str, subnet: Subnet) -> Iterator[str]:
    yield f"  {name}:"
    yield f"    purpose: {purpose}"
    if subnet.cidr is not None:
        yield f"    cidr: {subnet.cidr}"
    else:
        yield f"    cidr: {missing('the network of these addresses', str(subnet.example), subnet.why)}"


def _ssh(draft: Draft) -> Iterator[str]:
    yield "ssh:"
    yield _value("user", draft.user, "unprivileged login on every node, with sudo", "rackadmin")
    if draft.port is not None:
        yield f"  port: {draft.port}"
    if draft.key is not None:
        yield f"  key: {json.dumps(draft.key)}"
    if draft.jump_host is not None:
        yield f"  jump_host: {json.dumps(draft.jump_host)}"
    yield ""


def _nodes(draft: Draft) -> Iterator[str]:
    """All groups. A mark for the whole list is on the line that `validate` names for it."""
    heads = [group for group in draft.groups if NodeRole.HEAD in group.first.roles]
    count = sum(len(group.nodes) for group in heads)
    known = all(group.first.roles for group in draft.groups)
    no_head = known and not heads
    chosen = next((node.name for group in heads for node in group.nodes if node.primary), None)
    taken = [node.address.ip for node in draft.nodes if node.address is not None]
    examples = free_runs(draft.management, taken)
    yield "nodes:"
    for index, group in enumerate(draft.groups):
        mark = ""
        if no_head and index == 0:
            mark = missing("a head", "roles: [head, worker]")
        elif known and count > 1 and chosen is None and heads[0] is group:
            mark = missing("the primary head of several", f"primary: {group.first.name}")
        yield from _group(draft, group, mark, examples, primary=chosen if count > 1 else None)
    yield ""


def _group(
    draft: Draft, group: Folded, mark: str, examples: Iterator[IPv4Address], *, primary: str | None
) -> Iterator[str]:
    first, last = group.nodes[0], group.nodes[-1]
    where = first.where if first.where == last.where else f"{first.where} to {last.where}"
    yield f"  - nodes: {scalar(group.names)} {mark or f'# {_comment(where)}'}"
    if mark:
        yield f"    # {_comment(where)}"
    roles = ", ".join(role for role in NodeRole if role in first.roles)
    yield (
        f"    roles: [{roles}]"
        if roles
        else f"    roles: {_missing_key('roles', first.missing.get('roles', ''), None)}"
    )
    if primary is not None and any(node.name == primary for node in group.nodes):
        yield f"    primary: {scalar(primary)}"
    for key in _SHARED:
        value = getattr(first, key)
        if value is not None and draft.shared(key) is None:
            yield f"    {key}: {scalar(value)}"
        elif value is None and not _is_missing_everywhere(draft, key):
            why = first.missing.get(key, "")
            yield f"    {key}: {_missing_key(key, why, first.suggested_sku)}"
    yield from _addresses(group, examples)
    yield from _place(group)
    yield from _listed("macs", [(node.name, node.mac) for node in group.nodes])
    yield from _listed("serials", [(node.name, node.serial) for node in group.nodes])


def _addresses(group: Folded, examples: Iterator[IPv4Address]) -> Iterator[str]:
    if group.address is not None:
        yield f"    addresses: {{management: {_counted(group.address, len(group.nodes), as_address=True)}}}"
    else:
        example, *_ = [next(examples) for _ in group.nodes]
        what = (
            "address of the first node; the others follow" if len(group.nodes) > 1 else "address of the node"
        )
        yield "    addresses:"
        yield f"      management: {missing(what, str(example), group.first.missing.get('address', ''))}"
    if group.bmc is not None:
        yield f"    bmc: {{address: {_counted(group.bmc, len(group.nodes), as_address=True)}}}"


def _place(group: Folded) -> Iterator[str]:
    if group.rack is not None:
        yield f"    rack: {scalar(group.rack)}"
        if group.position is not None:
            yield f"    position: {_counted(group.position, len(group.nodes))}"
    if len(group.switch) == 1:
        yield f"    switch: {scalar(group.switch[0])}"
    elif group.switch:
        yield f"    switch: [{', '.join(json.dumps(leaf) for leaf in group.switch)}]"


def _counted(rule: Rule, count: int, *, as_address: bool = False) -> str:
    first = str(IPv4Address(rule.first)) if as_address else str(rule.first)
    return first if rule.step == 1 or count == 1 else f"{{first: {first}, step: {rule.step}}}"


def _listed(key: str, values: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    texts = [(name, value) for name, value in values if value is not None]
    if len(texts) == 1:
        yield f"    {key}: [{json.dumps(texts[0][1])}]"
    elif texts:
        yield f"    {key}:"
        yield from (f"      - {json.dumps(value)} # {name}" for name, value in texts)


def _roles() -> Iterator[str]:
    yield "# What runs on the nodes; each role is a section, e.g. `base: {}`. `rackwright schema` has all of them."
    yield "roles: {}"
