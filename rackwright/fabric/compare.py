"""Compares the declared fabric with what was found. Pure: an intact fabric has no findings at any size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import Found, FoundEnd, Stranger
from rackwright.fabric.links import judge_links
from rackwright.model.fabric import Cable, End, Fabric, NodePort, SwitchPort
from rackwright.model.ranges import fold
from rackwright.model.types import LinkKind
from rackwright.status import Status

_DOWN = ("down", "disabled", "init", "armed")
"""States of a port that is off, or that no subnet manager has brought up; the end of `lowerlayerdown` too."""
Describe = Callable[[FoundEnd], str]


@dataclass(frozen=True)
class Scope:
    """What is compared: cables of these nodes, and those between switches only where switches were asked."""

    nodes: frozenset[str] | None = None
    """None: all."""
    uplinks: bool = True
    no_speed: frozenset[str] = frozenset()
    """Nodes whose platform has no link speed to compare."""
    unread: frozenset[str] = frozenset()
    """Switches of subnets that could not be read: no cable of theirs is known to be wrong."""

    def has(self, cable: Cable) -> bool:
        if cable.far.switch in self.unread:
            return False
        if not isinstance(cable.near, NodePort):
            return self.uplinks
        return self.nodes is None or cable.near.node in self.nodes


def compare(
    fabric: Fabric, found: Found, describe: Describe = str, scope: Scope | None = None
) -> tuple[Finding, ...]:
    """Every difference, FAIL first; UNKNOWN for cables that cannot be judged."""
    work = _Comparison(fabric, found, describe, scope or Scope())
    findings = [*work.run(), *judge_links(fabric, found, describe, work.intact, work.scope.no_speed)]
    findings += [Finding(Kind.UNREAD, f"{text}.", status=Status.UNKNOWN) for text in found.unread]
    return tuple(sorted(findings, key=lambda one: (one.status is not Status.FAIL, one.kind, one.text)))


@dataclass
class _Comparison:
    fabric: Fabric
    found: Found
    describe: Describe
    scope: Scope
    intact: list[Cable] = field(default_factory=list)
    """Cables whose both ends are where they are declared."""
    _reported: set[FoundEnd] = field(default_factory=set)
    """Ends that are already in a finding."""

    def run(self) -> Iterator[Finding]:
        wrong: list[Cable] = []
        for cable in self.fabric.cables:
            if self.scope.has(cable):
                right = self.found.partner.get(cable.near) == cable.far
                (self.intact if right else wrong).append(cable)
        wrong, findings = self._without_silent(wrong)
        yield from findings
        wrong, findings = self._without_unseen(wrong)
        yield from findings
        for by_far in (False, True):
            for cable in wrong:
                if not self._reported.intersection(cable.ends[:1]):
                    yield from self._misplaced(cable, by_far=by_far)
        for cable in wrong:
            if cable.near not in self._reported:
                yield self._unlinked(cable)
        yield from self._extra()

    def _without_silent(self, wrong: list[Cable]) -> tuple[list[Cable], list[Finding]]:
        """Leave out cables of nodes that did not answer, or whose rail is ambiguous."""
        by_reason: dict[str, set[str]] = defaultdict(set)
        for name, why in self.found.silent.items():
            if self.scope.nodes is None or name in self.scope.nodes:
                by_reason[why].add(name)
        findings = [
            Finding(Kind.UNREAD, f"{fold(names)}: {why}.", tuple(sorted(names)), Status.UNKNOWN)
            for why, names in by_reason.items()
        ]
        kept = [
            cable
            for cable in wrong
            if not (isinstance(cable.near, NodePort) and self._is_unknown(cable.near.node, cable))
        ]
        return kept, findings

    def _is_unknown(self, node: str, cable: Cable) -> bool:
        actual = self.found.partner.get(cable.far)
        undecided = isinstance(actual, Stranger) and self.found.undecided.get(actual) == node
        return node in self.found.silent or undecided

    def _without_unseen(self, wrong: list[Cable]) -> tuple[list[Cable], list[Finding]]:
        """Report missing nodes and switches once, and leave out their cables."""
        members: dict[str, list[Cable]] = defaultdict(list)
        for cable in wrong:
            for end in cable.ends:
                members[end.node if isinstance(end, NodePort) else end.switch].append(cable)
        elsewhere = {
            cable.near.node
            for cable in self.fabric.cables
            if isinstance(cable.near, NodePort) and cable.far.switch in self.scope.unread
        }
        absent = members.keys() - self.found.seen - elsewhere  # which may be on a subnet that was not read
        findings, left_out = [], set[int]()
        for name in sorted(absent):
            cables = [cable for cable in members[name] if self._leads_nowhere(cable)]
            left_out.update(map(id, cables))
            if cables:
                findings.append(self._unseen(name, cables))
        return [cable for cable in wrong if id(cable) not in left_out], findings

    def _leads_nowhere(self, cable: Cable) -> bool:
        """Whether neither end of a cable was located: it has no link, or ends in a switch without a known name.

        On Ethernet, a node's port that is off or was not found is a separate finding.
        """
        partners = [self.found.partner.get(end) for end in cable.ends]
        if self._by_lldp and not any(partners) and self._state(cable.near) in (None, *_DOWN):
            return False
        return all(end is None or isinstance(end, Stranger) for end in partners)

    @property
    def _by_lldp(self) -> bool:
        """Whether only nodes were asked, and what a switch does not announce is not known."""
        return self.fabric.kind is not LinkKind.INFINIBAND

    def _state(self, end: End) -> str | None:
        health = self.found.health.get(end)
        return None if health is None or health.state is None else health.state.removeprefix("lowerlayer")

    def _unseen(self, name: str, cables: list[Cable]) -> Finding:
        if name not in self.fabric.switches:
            leaves = ", ".join(dict.fromkeys(str(cable.far) for cable in cables))
            text = f"{name} is absent: none of its {len(cables)} ports is on the fabric (declared: {leaves})."
            return Finding(Kind.ABSENT_NODE, text, (name,))
        nodes = {cable.near.node for cable in cables if isinstance(cable.near, NodePort)}
        of_whom = f" of {fold(nodes)}" if nodes else ""
        others = {self.found.partner.get(end) for cable in cables for end in cable.ends}
        strangers = sorted({end.name for end in others if isinstance(end, Stranger)})
        if strangers:
            text = (
                f"{name} was not identified: cables declared for it{of_whom} end in {', '.join(strangers[:4])}. Declare its "
                f"`guid` or `description` under `fabrics.{self.fabric.network}.switches.{name}`."
            )
            return Finding(Kind.UNREAD, text, (name,), Status.UNKNOWN)
        if self._by_lldp:
            text = f"{name} was not seen: no LLDP on the ports{of_whom} that are cabled to it. Check that the switch sends LLDP."
            return Finding(Kind.UNREAD, text, (name,), Status.UNKNOWN)
        return Finding(
            Kind.ABSENT_SWITCH,
            f"{name} is absent: no switch of that name was found; {len(cables)} of its cables{of_whom} have no link.",
            (name,),
        )

    def _misplaced(self, cable: Cable, *, by_far: bool) -> Iterator[Finding]:
        """The finding about a cable whose near end, or else whose far end, is somewhere else."""
        here, there = reversed(cable.ends) if by_far else cable.ends
        actual = self.found.partner.get(here)
        if actual is None or here in self._reported or (by_far and actual in self._reported):
            return
        self._reported.update((cable.near, here, actual))
        if self._is_swap(here, there, actual):
            yield self._swapped(here, there, actual)
            return
        also = (
            "" if (other := self.found.partner.get(there)) is None else f"; {self.describe(other)} is there"
        )
        text = f"{self.describe(here)} is in {self.describe(actual)}; {there} was declared{also}."
        yield Finding(self._kind(here, there, actual), text, (str(here), str(actual), str(there)))

    def _is_swap(self, here: End, there: End, actual: FoundEnd) -> bool:
        """Whether the cable that belongs where this one is, is where this one belongs."""
        if isinstance(actual, Stranger) or (other := self.fabric.by_end.get(actual)) is None:
            return False
        partner = other.near if other.far == actual else other.far
        return self.found.partner.get(partner) == there and partner != here

    def _swapped(self, here: End, there: End, actual: FoundEnd) -> Finding:
        assert not isinstance(actual, Stranger)
        other = self.fabric.by_end[actual]
        partner = other.near if other.far == actual else other.far
        self._reported.update((there, partner, other.near, other.far))
        same_node = isinstance(here, NodePort) and isinstance(partner, NodePort) and here.node == partner.node
        text = (
            f"{self.describe(here)} is in {actual}; {there} was declared; {self.describe(partner)} has it and was "
            f"declared in {actual}: swapped."
        )
        ends = (str(here), str(partner), str(there), str(actual))
        return Finding(Kind.WRONG_RAIL if same_node else Kind.SWAPPED, text, ends)

    def _kind(self, here: End, there: End, actual: FoundEnd) -> Kind:
        if isinstance(actual, Stranger) or not isinstance(there, SwitchPort):
            return Kind.OTHER_DEVICE
        if isinstance(actual, NodePort):
            return Kind.OTHER_DEVICE
        if actual.switch == there.switch:
            return Kind.WRONG_PORT
        if not isinstance(here, NodePort):
            return Kind.WRONG_SPINE
        rails = self.fabric.rails_of(actual.switch)
        return Kind.WRONG_LEAF if not rails or here.rail in rails else Kind.WRONG_RAIL

    def _unlinked(self, cable: Cable) -> Finding:
        """A cable without a link: its port is off, or it is on and nothing answers (`polling`)."""
        self._reported.update(cable.ends)
        states = [
            f"{end} is {state}"
            for end in cable.ends
            if (health := self.found.health.get(end)) is not None and (state := health.state) is not None
        ]
        taken = self.found.partner.get(cable.far)
        has = "" if taken is None else f", which {self.describe(taken)} has"
        where = f"{self.describe(cable.near)} has no link; {cable.far} was declared{has}"
        ends = (str(cable.near), str(cable.far))
        if self._by_lldp and not any(state.endswith(_DOWN) for state in states):
            return self._unheard(cable, ends, up=bool(states))
        shown = f" ({'; '.join(states)})" if states else ""
        if any(state.endswith(_DOWN) for state in states):
            return Finding(Kind.DOWN, f"{where}{shown}.", ends)
        return Finding(Kind.MISSING, f"{where}{shown}: nothing answers at the other end of the port.", ends)

    def _unheard(self, cable: Cable, ends: tuple[str, str], *, up: bool) -> Finding:
        """A node's port that is up but receives nothing: a switch without LLDP looks the same as no cable."""
        why = (
            "has a link but receives no LLDP: check that the switch sends it"
            if up
            else "was not found: no interface of the node is declared for it or has its address"
        )
        return Finding(Kind.UNREAD, f"{self.describe(cable.near)} {why}", ends, Status.UNKNOWN)

    def _extra(self) -> Iterator[Finding]:
        """Cables of which no end is declared, or of which one end should have none."""
        if self.scope.nodes is not None:
            return
        seen: set[FoundEnd] = set()
        for one, other in self.found.partner.items():
            if one in seen or one in self._reported or other in self._reported:
                continue
            seen.update((one, other))
            declared = [
                end for end in (one, other) if not isinstance(end, Stranger) and end in self.fabric.by_end
            ]
            if not declared and not (isinstance(one, Stranger) and isinstance(other, Stranger)):
                text = (
                    f"{self.describe(one)} and {self.describe(other)} are cabled; this cable is not declared."
                )
                yield Finding(Kind.EXTRA, text, (str(one), str(other)))
