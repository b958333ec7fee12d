"""Checks of the munge role, and of every pair of nodes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from rackwright.claims.accounts import has_ids
from rackwright.claims.check import Check, CheckContext, Undetermined, Warned, each, fail
from rackwright.claims.files import has_access, holds_secret_text
from rackwright.claims.units import software_runs
from rackwright.model.cluster import Node
from rackwright.osfamily.names import names
from rackwright.roles.munge.options import MungeOptions
from rackwright.secrets.store import store_of

# An unprivileged credential that only root may decode: a process list shows it for a moment,
# where it is worth nothing.
_ENCODE = "munge -n -U nobody -u root"
_DECODE = "sh -c %s decode "
_DECODE_SCRIPT = (
    'for c; do out=$(printf %s "$c" | unmunge -n -N -k ENCODE_TIME,DECODE_TIME -m - 2>/dev/null); '
    "echo $? $out; done"
)
_EXIT_NO_SOCKET = 6
_CLOCK = {15: "expired", 16: "rewound"}
_REASONS = {14: "not of this key", 17: "seen before", 18: "not for root"}


@dataclass(frozen=True)
class Decoded:
    """What unmunge reported about one credential; `skew_seconds` is decoding minus encoding time."""

    status: int
    skew_seconds: float | None


def parse_decoded(output: str) -> list[Decoded]:
    """One line per credential: `0 ENCODE_TIME: 1795206675 DECODE_TIME: 1795206676`."""
    found = []
    for line in output.splitlines():
        words = line.split()
        if not words or not words[0].isdigit():
            raise Undetermined(f"unmunge printed an unreadable line: {line!r}")
        times = dict(zip(words[1::2], words[2::2], strict=False))
        encoded, decoded = times.get("ENCODE_TIME:", ""), times.get("DECODE_TIME:", "")
        skew = float(decoded) - float(encoded) if encoded.isdigit() and decoded.isdigit() else None
        found.append(Decoded(int(words[0]), skew))
    return found


def pairs(nodes: tuple[Node, ...], hub: Node, all_pairs_max: int) -> dict[str, tuple[str, ...]]:
    """By node, whose credentials it decodes: every node's, or in a large cluster its neighbour's and the hub's."""
    all_names = tuple(node.name for node in nodes)
    if len(nodes) <= all_pairs_max:
        return dict.fromkeys(all_names, all_names)
    ring = {
        name: tuple(dict.fromkeys((all_names[index - 1], hub.name))) for index, name in enumerate(all_names)
    }
    return {**ring, hub.name: all_names}


def _ids(context: CheckContext[MungeOptions]) -> str:
    return has_ids(context, "munge", context.options.uid, context.options.gid)


def _key_access(context: CheckContext[MungeOptions]) -> str:
    return has_access(context, _key(context), "400", "munge", "munge")


def _key_is_declared(context: CheckContext[MungeOptions]) -> str:
    key = base64.b64decode(store_of(context.cluster).get("munge_key").reveal())
    return f"the digest of {holds_secret_text(context, _key(context), key)} is as declared"


def _key(context: CheckContext[MungeOptions]) -> str:
    return names(context.node.family, "munge").paths["key"]


def _round_trip(context: CheckContext[MungeOptions]) -> str:
    (decoded,) = parse_decoded(
        context.output(_DECODE + "%s", _DECODE_SCRIPT, _credential(context, context.node))
    )
    if decoded.status == _EXIT_NO_SOCKET:
        raise Undetermined("munged does not answer on this node")
    if decoded.status != 0:
        fail(f"unmunge refuses this node's own credential: {_reason(decoded.status)}")
    return "encodes and decodes"


def _credential(context: CheckContext[MungeOptions], node: Node) -> str:
    return context.output(_ENCODE, host=context.on(node.name)).strip()


def _reason(status: int) -> str:
    return {**_CLOCK, **_REASONS}.get(status, f"exit status {status}")


def _cross_node(context: CheckContext[MungeOptions]) -> str:
    options = context.options
    nodes = context.cluster.running("munge")
    wanted = pairs(nodes, context.node, options.all_pairs_nodes_max)
    silent: list[str] = []
    credentials: dict[str, str] = {}

    def encode(node: Node) -> None:
        try:
            credentials[node.name] = _credential(context, node)
        except Undetermined as error:
            silent.append(f"{node.name}: {error}")

    def decode(name: str) -> list[tuple[str, Decoded]]:
        usable = tuple(source for source in wanted[name] if source in credentials)
        return list(_decode(context, name, usable, credentials, silent))

    each(encode, nodes)
    refused, skewed = [], []
    for name, answers in zip(wanted, each(decode, wanted), strict=True):
        for source, decoded in answers:
            if decoded.status in _CLOCK:
                refused.append(f"{name} refuses {source}: {_reason(decoded.status)}, their clocks differ")
            elif decoded.status != 0:
                refused.append(f"{name} refuses {source}: {_reason(decoded.status)}")
            elif abs(decoded.skew_seconds or 0) > options.clock_skew_seconds_max:
                skewed.append(f"{name} is {decoded.skew_seconds:+.0f} s against {source}")
    return _verdict(nodes, wanted, refused, skewed, silent)


def _decode(
    context: CheckContext[MungeOptions],
    name: str,
    sources: tuple[str, ...],
    credentials: dict[str, str],
    silent: list[str],
) -> Iterator[tuple[str, Decoded]]:
    if not sources:
        return
    try:
        output = context.output(
            _DECODE + " ".join(["%s"] * len(sources)),
            _DECODE_SCRIPT,
            *(credentials[source] for source in sources),
            host=context.on(name),
        )
    except Undetermined as error:
        silent.append(f"{name}: {error}")
        return
    answers = parse_decoded(output)
    if len(answers) != len(sources) or any(answer.status == _EXIT_NO_SOCKET for answer in answers):
        silent.append(f"{name}: munged does not answer")
        return
    yield from zip(sources, answers, strict=True)


def _verdict(
    nodes: tuple[Node, ...],
    wanted: dict[str, tuple[str, ...]],
    refused: list[str],
    skewed: list[str],
    silent: list[str],
) -> str:
    if refused:
        fail(_first(refused))
    if silent:
        raise Undetermined(_first(silent))
    if skewed:
        raise Warned(f"clocks are far apart: {_first(skewed)}")
    count = sum(len(sources) for sources in wanted.values())
    if count == len(nodes) ** 2:
        return f"{count} pairs: every node decodes every node's credential"
    return f"{count} pairs of {len(nodes)} nodes: each decodes its neighbour's and the head's, the head all"


def _first(sentences: list[str]) -> str:
    more = f" (and {len(sentences) - 3} more)" if len(sentences) > 3 else ""
    return "; ".join(sentences[:3]) + more


CHECKS = (
    Check("munged is running", partial(software_runs, software="munge"), settle_seconds=10),
    Check("munge has its declared ids", _ids),
    Check("only munge can read the munge key", _key_access),
    Check("the munge key is the declared one", _key_is_declared),
    Check("munge encodes and decodes a credential", _round_trip, settle_seconds=10, live=True),
    Check(
        "munge credentials are valid between nodes",
        _cross_node,
        scope="cluster",
        settle_seconds=20,
        timeout_seconds=300,
    ),
)
