"""No line is lost or duplicated by a failure between a node and the head."""

from __future__ import annotations

import re

import pytest

from rackwright.roles.logs.paths import GATE_UNIT, KEEPER_TIMER, RECEIVER_UNIT, SOCKET, UPLOAD
from tests.racks.logs.lines import HEAD, arrives, numbered, on_head, reach, until, write
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_WORKERS = ("worker1", "worker2")
_STREAM = (
    "systemd-run -q --collect --unit {tag} -p SyslogIdentifier={tag} sh -c "
    "'n=0; while [ $n -lt {last} ]; do n=$((n + 1)); echo {tag} $n; [ $((n % 50)) != 0 ] || sleep 0.5; done'"
)


def _starts(site: Site, node: str) -> int:
    """How often systemd has started the node's sender again."""
    return int(site.on(node, f"systemctl show -P NRestarts {UPLOAD}"))


def _starts_again(site: Site, node: str, before: int) -> None:
    until(lambda: _starts(site, node) > before, f"new start of the sender on {node}")


def _is_stuck(site: Site, node: str) -> bool:
    """Whether the node's kernel has sent some bytes of its sender at least six times, which takes some ten seconds."""
    said = site.on(node, "ss -tno 'dport = :19532'")
    return any(int(times) >= 6 for times in re.findall(r"timer:\(on,[^,)]*,([0-9]+)\)", said))


@pytest.mark.smoke
def test_receiver_and_gate_are_stopped(site: Site):
    tag = "lo-stopped"
    before = {node: _starts(site, node) for node in site.nodes}
    site.on(HEAD, f"systemctl stop {SOCKET} {GATE_UNIT} {RECEIVER_UNIT}")
    for node in site.nodes:
        write(site, node, tag, 1, 300)
    for node in site.nodes:
        _starts_again(site, node, before[node])
        write(site, node, tag, 301, 400)
    assert [on_head(site, node, tag) for node in site.nodes] == [[], [], []]
    site.on(HEAD, f"systemctl start {SOCKET} {RECEIVER_UNIT}")
    arrives(site, tag, dict.fromkeys(site.nodes, 400))


def test_sender_gate_and_receiver_are_killed_while_lines_arrive(site: Site):
    tag, last = "lo-killed", 4500
    site.on("worker1", _STREAM.format(tag=tag, last=last))
    for node, unit in (("worker1", UPLOAD), (HEAD, GATE_UNIT), (HEAD, RECEIVER_UNIT)):
        reach(site, "worker1", tag, len(set(on_head(site, "worker1", tag))) + 1)
        site.on(node, f"systemctl kill --signal KILL {unit}")
    assert site.on("worker1", f"systemctl is-active {tag}").strip() == "active"
    arrives(site, tag, {"worker1": last})


def test_workers_are_cut_off_and_one_loses_its_power_meanwhile(site: Site):
    tag = "lo-cut"
    for node in _WORKERS:
        site.fault(node, "cut")
        write(site, node, tag, 1, 300)
    site.rack.power("worker2", "off")
    until(lambda: _is_stuck(site, "worker1"), "attempt of the sender that gets no answer")
    assert [on_head(site, node, tag) for node in _WORKERS] == [[], []]
    for node in _WORKERS:
        site.heal(node)
    arrives(site, tag, dict.fromkeys(_WORKERS, 300))


def test_the_disk_of_the_head_is_full(site: Site):
    """What fits into a file that is there already still arrives: the first lines fill it.

    The keeper would make room at the cost of closed files, as declared by `keep_free`.
    """
    tag, large = "lo-full", "lo-large"
    site.on(HEAD, f"systemctl stop {KEEPER_TIMER}")
    site.fault(HEAD, "fill-disk")
    site.on("worker1", f"head -c 9000000 /dev/urandom | base64 -w 4000 | systemd-cat -t {large}")
    write(site, "worker1", tag, 1, 500)
    write(site, "worker2", tag, 1, 500)
    until(lambda: "No space left on device" in _last_words(site), "word of the receiver about its full disk")
    assert len(on_head(site, "worker1", tag)) < 500
    site.heal(HEAD)
    site.on(HEAD, f"systemctl start {KEEPER_TIMER}")
    arrives(site, tag, dict.fromkeys(_WORKERS, 500))


def _last_words(site: Site) -> str:
    return site.on(HEAD, f"journalctl -q -o cat -n 30 -u {RECEIVER_UNIT}")


def test_the_plug_of_the_head_is_pulled(site: Site):
    tag = "lo-power"
    write(site, HEAD, tag, 1, 200)
    site.rack.power(HEAD, "off")
    for node in _WORKERS:
        write(site, node, tag, 1, 400)
    site.rack.power(HEAD, "on")
    assert on_head(site, "worker1", tag) != numbered(tag, range(1, 401))
    arrives(site, tag, {HEAD: 200, "worker1": 400, "worker2": 400})
