"""Checks of the dns role: the file, the resolver behind it, and what each resolver answers."""

from __future__ import annotations

import re
from functools import partial

from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.packages import package_state
from rackwright.claims.units import is_masked, software_runs
from rackwright.model.cluster import Node
from rackwright.model.types import NetworkPurpose
from rackwright.osfamily.names import names
from rackwright.roles.dns import texts
from rackwright.roles.dns.asking import SECONDS, Answered, ask
from rackwright.roles.dns.names import records
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.dns.wire import A, DnsQuestion, reverse

_SETTLE_SECONDS = 10
_NAMED_MAX = 3
_SOCKETS = "ss -Hlntup 'sport = :53'"
_PROGRAM = re.compile(r'users:\(\("([^"]*)"')


def _resolv_conf(context: CheckContext[DnsOptions]) -> str:
    declared = texts.resolv_conf(context.cluster, context.node, context.options)
    as_rendered(context, {texts.RESOLV_CONF: declared})
    return ", ".join(texts.nameservers(context.cluster, context.node, context.options))


def _no_other_writer(context: CheckContext[DnsOptions]) -> str:
    is_masked(context, "systemd-resolved.service", why="two resolvers may answer differently")
    writers = names(context.node.family, "resolv.conf").packages
    if writers and (there := package_state(context, writers).installed):
        fail(f"{', '.join(there)} is installed and writes {texts.RESOLV_CONF}")
    kept_off = as_rendered(context, texts.writers_off(context.node))
    return f"systemd-resolved is masked; {kept_off}"


def _settings(context: CheckContext[DnsOptions]) -> str:
    return as_rendered(context, texts.unbound_files(context.cluster, context.node, context.options))


def _knows_every_name(context: CheckContext[DnsOptions]) -> str:
    known = list(records(context.cluster, context.node))
    wanted: dict[DnsQuestion, set[str]] = {}
    for record in known:
        wanted.setdefault(DnsQuestion(record.name), set()).add(record.address)
        if record.canonical:
            wanted[reverse(record.address)] = {record.name}
    wrong = _wrong(ask(context, texts.LOOPBACK, list(wanted)), wanted)
    if wrong:
        fail(f"{len(wrong)} of {len(wanted)} answers are not as declared: {_some(wrong)}")
    return f"{len(wanted)} names and addresses"


def _wrong(answers: list[Answered], wanted: dict[DnsQuestion, set[str]]) -> list[str]:
    """What is wrong with answers, by question; a question without an answer is wrong too."""
    found = {one.question: one for one in answers}
    wrong = []
    for question, values in wanted.items():
        one = found.get(question)
        if one is None or one.reply is None:
            wrong.append(f"{question}: {'not asked' if one is None else one.error}")
        elif set(one.reply.values) != values:
            wrong.append(f"{question} is {one}, not {', '.join(sorted(values))}")
    return wrong


def _some(wrong: list[str]) -> str:
    more = f"; and {len(wrong) - _NAMED_MAX} more" if wrong[_NAMED_MAX:] else ""
    return "; ".join(wrong[:_NAMED_MAX]) + more


def _each_resolver(context: CheckContext[DnsOptions]) -> list[tuple[str, str]]:
    """The address of each declared resolver, and how a message calls it."""
    owners = {entry.address: node.name for node in context.cluster.nodes for entry in node.addresses}
    servers = texts.nameservers(context.cluster, context.node, context.options)
    called = {str(address): f"{name} ({address})" for address, name in owners.items()}
    return [(server, called.get(server, server)) for server in servers]


def _cluster_names(context: CheckContext[DnsOptions]) -> str:
    """The node's own name and the next node's, by each resolver, and back."""
    node, cluster = context.node, context.cluster
    names_in_order = [one.name for one in cluster.nodes]
    neighbour = cluster.nodes[(names_in_order.index(node.name) + 1) % len(cluster.nodes)]
    asked = {one.name: one for one in (node, neighbour)}
    wanted: dict[DnsQuestion, set[str]] = {}
    for one in asked.values():
        address = str(cluster.management_address(one))
        wanted |= {DnsQuestion(one.fqdn): {address}, reverse(address): {one.fqdn}}
    found = _each_resolver(context)
    answers = each(lambda server: ask(context, server[0], list(wanted)), found)
    wrong = []
    for (_, name), given in zip(found, answers, strict=True):
        if all(one.reply is None for one in given):
            wrong.append(f"{name} does not answer: {given[0].error}")
        else:
            wrong += [f"{name}: {text}" for text in _wrong(given, wanted)]
    if wrong:
        fail(_some(wrong))
    return f"{' and '.join(asked)}, and their addresses, by {', '.join(name for _, name in found)}"


def _outside_name(context: CheckContext[DnsOptions]) -> str:
    question = DnsQuestion(context.options.outside_name)
    found = _each_resolver(context)
    answers = each(lambda server: ask(context, server[0], [question])[0], found)
    if silent := [
        f"{name}: {one.error}" for (_, name), one in zip(found, answers, strict=True) if one.reply is None
    ]:
        fail(f"{question.name} is not answered within {SECONDS:g} s by {'; '.join(silent)}")
    codes = [one.reply.code if one.reply is not None else "" for one in answers]
    replies = ", ".join(
        f"{name} {one.reply.code if one.reply else ''} in {one.seconds:.3f} s"
        for (_, name), one in zip(found, answers, strict=True)
    )
    if any(code not in ("NOERROR", "NXDOMAIN") for code in codes):
        raise Warned(f"{question.name} is answered at once but not resolved: {replies}")
    return f"{question.name}: {replies}"


def _only_inside(context: CheckContext[DnsOptions]) -> str:
    """unbound listens where it is declared to, and refuses questions from an external address of the head."""
    own = str(context.cluster.management_address(context.node))
    wanted = {(kind, address) for kind in ("tcp", "udp") for address in (texts.LOOPBACK, own)}
    listening = parse_sockets(context.output(_SOCKETS))
    if wrong := [f"{address} ({kind})" for kind, address in sorted(listening - wanted)]:
        fail(f"unbound listens on {', '.join(wrong)}, which is not declared")
    if missing := [f"{address} ({kind})" for kind, address in sorted(wanted - listening)]:
        fail(f"unbound does not listen on {', '.join(missing)}")
    outer = [
        str(entry.address)
        for entry in context.node.addresses
        if context.cluster.networks[entry.network].purpose is NetworkPurpose.EXTERNAL
    ]
    question = DnsQuestion(context.node.fqdn, A)
    for source in outer:
        (one,) = ask(context, own, [question], source=source)
        if one.reply is not None and one.reply.code != "REFUSED":
            fail(f"unbound answers {source}, an external address, with {one}")
        if one.reply is None:
            raise Undetermined(f"unbound does not refuse a query from {source}: {one.error}")
    refused = f"; {', '.join(outer)} is refused" if outer else ""
    return f"listens only on {texts.LOOPBACK} and {own}{refused}"


def parse_sockets(printed: str) -> set[tuple[str, str]]:
    """`ss -Hlntup`: protocol and address of unbound's sockets; Undetermined for a line that is not one."""
    found = set()
    for line in printed.splitlines():
        fields = line.split()
        program = _PROGRAM.search(line)
        if len(fields) < 6 or program is None:
            raise Undetermined(f"ss printed a line without a program: {line[:80]!r}")
        if program[1] == "unbound":
            found.add((fields[0], fields[4].rpartition(":")[0].partition("%")[0]))
    return found


def _serves(node: Node, options: DnsOptions) -> bool:
    return options.serves(node)


CHECKS: tuple[Check, ...] = (
    Check("/etc/resolv.conf is as declared", _resolv_conf),
    Check("nothing else writes /etc/resolv.conf", _no_other_writer),
    Check(
        "the cluster's resolver is running and enabled at boot",
        partial(software_runs, software="unbound"),
        applies=_serves,
    ),
    Check("the cluster's resolver has its declared settings", _settings, applies=_serves),
    Check(
        "the cluster's resolver knows every declared name",
        _knows_every_name,
        applies=_serves,
        live=True,
        settle_seconds=_SETTLE_SECONDS,
        timeout_seconds=120,
    ),
    Check(
        "the cluster's resolver answers only the cluster's networks",
        _only_inside,
        applies=_serves,
        live=True,
        settle_seconds=_SETTLE_SECONDS,
    ),
    Check(
        "each declared resolver knows the node and its neighbour",
        _cluster_names,
        applies=lambda node, options: options.resolver == "caching",
        live=True,
        settle_seconds=_SETTLE_SECONDS,
    ),
    Check(
        "an external name is answered or refused at once",
        _outside_name,
        live=True,
        settle_seconds=_SETTLE_SECONDS,
    ),
)
