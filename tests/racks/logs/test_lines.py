"""What `rackwright logs` prints: the lines that were asked for, and what it does not know."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from rackwright.logs.sources import address_of
from rackwright.roles.logs.paths import GATE_UNIT, JOURNALS, RECEIVER_UNIT, SOCKET, SOURCES
from tests.racks.logs.lines import HEAD, ask, found, reach, until, write
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_UTC = "%Y-%m-%d %H:%M:%S"
_LONG = """\
import socket
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def write(name, message):
    fields = f"PRIORITY=6\\nSYSLOG_IDENTIFIER={name}\\nMESSAGE={message}\\n"
    journal.sendto(fields.encode(), "/run/systemd/journal/socket")
for number in range(500):
    write("lo-name" * 800, chr(0x1F600) * 4090 + str(number))
write("lo-long", "lo-long 1")
"""


def test_lines_of_a_node_a_time_and_a_priority(site: Site):
    tag = "lo-asked"
    for node in site.nodes:
        write(site, node, tag, 1, 1)
    between = int(site.on("worker1", "sleep 1.1; date +%s; sleep 1.1"))
    write(site, "worker1", tag, 2, 2)
    site.on("worker1", f"echo {tag} 3 | systemd-cat -t {tag} -p err")
    for node, number in ((HEAD, 1), ("worker1", 3), ("worker2", 1)):
        reach(site, node, tag, number)
    at = datetime.fromtimestamp(between, UTC).strftime(_UTC)
    everywhere = ("--grep", tag.upper())  # in lower or upper case
    assert {node for node, _ in found(site, *everywhere)} == set(site.nodes)
    mine = [(HEAD, f"{tag} 1"), ("worker2", f"{tag} 1")]
    assert sorted(found(site, *everywhere, "--node", "head1,worker2")) == mine
    assert found(site, *everywhere, "--since", at) == [("worker1", f"{tag} 2"), ("worker1", f"{tag} 3")]
    assert {message for _, message in found(site, *everywhere, "--until", at)} == {f"{tag} 1"}
    assert found(site, *everywhere, "--priority", "err") == [("worker1", f"{tag} 3")]
    assert ask(site, *everywhere, "--node", "worker1", "--lines", "2")["more"] is True


def test_lines_of_a_unit_and_what_systemd_says_of_it(site: Site):
    site.on("worker1", "systemd-run -q --wait --collect --unit lo-unit sh -c 'echo of it; exit 3' || :")
    site.on("worker1", "systemd-run -q --wait --collect --unit lo-other echo lo-unit of another")
    until(lambda: len(found(site, "--unit", "lo-unit")) >= 4, "line of the unit")
    lines = [message for _, message in found(site, "--unit", "lo-unit")]
    assert "of it" in lines
    assert "lo-unit.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED" in lines
    assert [message for message in lines if "another" in message and "echo" not in message] == []


def test_new_lines_are_followed(site: Site):
    running = site.start("logs", str(site.file), "--follow", "--grep", "lo-followed")
    try:
        until(lambda: "missing line" in running.said(), "first answer")
        write(site, "worker2", "lo-followed", 1, 2)
        until(lambda: "lo-followed 2" in running.printed(), "new line")
    finally:
        running.process.send_signal(signal.SIGINT)
        ran = running.wait(60)
    assert [line.rpartition("worker2 ")[2].partition("[")[0] for line in ran.out.splitlines()] == [
        "lo-followed"
    ] * 2


def test_the_audit_trail_has_logins_sudo_su_and_runs_and_marks_what_a_user_wrote(site: Site):
    site.on("worker1", "sudo -u bob true lo-sudo; su bob -s /bin/sh -c true")
    fake = "root : TTY=pts/0 ; COMMAND=lo-fake"
    for in_what in ("", "unshare -Ur "):  # as root of a user namespace, it has all capabilities there
        log = f"{in_what}logger -p authpriv.notice -t sudo '{fake}'"
        site.on("worker1", f"cd /; runuser -u ada -- {log}")
    site.on("worker1", "cd /; runuser -u ada -- su bob -s /bin/sh -c true </dev/null || :")
    site.on("worker1", "logger -t lo-plain lo-plain is not a login")
    reach(site, "worker1", "lo-plain", 1)
    lines = ask(site, "--audit")["lines"]
    said = {(line["node"], line["name"], line["trusted"]) for line in lines}
    assert {("worker1", "sudo", True), ("worker1", "su", True), (HEAD, "rackwright", True)} <= said
    for words in ("COMMAND=/usr/bin/true lo-sudo", "(to bob) root", "Accepted publickey for rack"):
        assert [line for line in lines if line["node"] == "worker1" and words in line["message"]], words
    assert [line for line in lines if "lo-plain" in line["message"]] == []
    forged = [(line["trusted"], line["uid"]) for line in lines if line["message"] == fake]
    assert forged == [(False, 3000)] * 2
    shown = site.cli("logs", str(site.file), "--audit", "--grep", "lo-fake").out.splitlines()
    assert [line for line in shown if line.endswith("COMMAND=lo-fake  [uid 3000 wrote it]")] == shown[-2:]
    denied = [line for line in lines if "(to bob) ada" in line["message"]]
    assert [(line["name"], line["trusted"], line["uid"]) for line in denied] == [("su", False, 3000)]


def test_a_user_s_long_lines_and_names_cost_no_answer(site: Site):
    """As many as make more JSON than the control node takes."""
    site.on(
        "worker1",
        f"cat >/run/lo-long.py <<'END'\n{_LONG}END\ncd /; runuser -u ada -- python3 /run/lo-long.py",
    )
    reach(site, "worker1", "lo-long", 1)
    reported = ask(site, "--node", "worker1")
    assert reported["more"] is True
    assert {len(line["name"]) for line in reported["lines"] if line["name"].startswith("lo-name")} == {1024}
    assert ("worker1", "lo-long 1") in {(line["node"], line["message"]) for line in reported["lines"]}


def test_the_audit_trail_says_who_ran_rackwright_and_what_it_changed(site: Site):
    changed = "/etc/rackwright/logs/gate.json"
    site.on(HEAD, f"echo >>{changed}")
    site.apply()
    run = site.runs()[-1].run
    end = f"run {run} ended: finished"
    until(lambda: (HEAD, end) in found(site, "--audit", "--grep", run), "end of the run")
    lines = [message for _, message in found(site, "--audit", "--grep", run)]
    who = site.tool("sh", "-c", "echo $(id -un)@$(hostname)", name="who").out.strip()
    began = f"run {run} of {site.name} began, by {who}: rackwright apply {site.file} --yes"
    assert lines[:2] == [began, f"run {run} changes head1: 2"]  # and a restart


def test_nodes_without_lines_are_named(site: Site):
    """One that has never sent, and one that has sent nothing for longer than the mark's time."""

    def one_more(content: dict[str, object]) -> None:
        nodes = content["nodes"]
        assert isinstance(nodes, list)
        nodes[1]["nodes"] = "worker[1-3]"

    assert ask(site, "--grep", "lo-none")["unknown"] == []
    with site.declaring(one_more):
        reported = ask(site, "--grep", "lo-none", expect=4)
    assert reported["unknown"] == ["head1 has no line of worker3"]
    with _at_rest(site):
        newest = 192  # tail_entry_realtime (systemd.io/JOURNAL_FILE_FORMAT, "Header")
        stamp = int((time.time() - 1500) * 1e6).to_bytes(8, "little")
        with _spoiled(site, "worker2", newest, stamp):
            reported = ask(site, "--grep", "lo-none", expect=4)
        late = "the newest line of worker2 is 25 min old: later ones have not reached head1"
        assert reported["unknown"] == [late]
    assert reported["newest"]["worker1"] is not None


def test_a_damaged_file_is_named_and_what_is_left_is_read(site: Site):
    tag = "lo-left"
    write(site, "worker1", tag, 1, 50)
    reach(site, "worker1", tag, 50)
    name = _file(site, "worker1")
    with _at_rest(site):
        size = int(site.on(HEAD, f"stat -c %s {name}"))
        for place, content in ((0, b"NOTHINGS"), (size // 30 // 8 * 8, b"\xa5" * 32768)):
            closed = name.replace(".journal", f"@{'0' * 32}-{'0' * 16}-{'0' * 16}.journal")
            site.on(HEAD, f"cp --sparse=always -p {name} {closed}")  # what is left
            try:
                with _spoiled(site, "worker1", place, content):
                    ran = ask(site, "--node", "worker1", expect=4)
            finally:
                site.on(HEAD, f"rm {closed}")
            assert [text.split(": ")[:2] for text in ran["unknown"]] == [
                ["worker1", f"cannot read all of {name.rpartition('/')[2]}"]
            ], place
            assert len([line for line in ran["lines"] if line.get("name") == tag]) == 50, place
    assert ask(site, "--node", "worker1")["unknown"] == []


@contextmanager
def _at_rest(site: Site) -> Iterator[None]:
    """Nothing writes to the files."""
    site.on(HEAD, f"systemctl stop {SOCKET} {GATE_UNIT} {RECEIVER_UNIT}")
    try:
        yield
    finally:
        site.on(HEAD, f"systemctl start {SOCKET} {RECEIVER_UNIT}")


def _file(site: Site, node: str) -> str:
    address = address_of(json.loads(site.on(HEAD, f"cat {SOURCES}"))[node])
    return f"{JOURNALS}/remote-{address}.journal"


@contextmanager
def _spoiled(site: Site, node: str, place: int, content: bytes) -> Iterator[None]:
    """Other bytes in a node's file for a while."""
    name = _file(site, node)
    site.on(HEAD, f"cp --sparse=always -p {name} /root/kept")
    spoil = f"import os; fd = os.open('{name}', os.O_WRONLY); os.pwrite(fd, bytes.fromhex('{content[:8].hex()}') * {len(content) // 8}, {place})"
    try:
        site.on(HEAD, f'python3 -c "{spoil}"')
        yield
    finally:
        site.on(HEAD, f"cp --sparse=always /root/kept {name}; rm /root/kept")
