"""The screen of `rackwright top`, driven by keys, without a terminal."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import pytest
from textual.widgets import DataTable, Input, Static

from rackwright.cli.top_app import TopApp
from rackwright.cli.top_screens import Ask, Confirm, Help, Why
from rackwright.errors import RackwrightError, WorkloadError
from rackwright.live.facts import Unknown
from rackwright.workload.protocol import Job
from tests.unit.answers import is_harmless
from tests.unit.top.fake_source import FORGED, FakeSource, cluster_of, state

SIZE = (140, 40)


def drive(check, source=None, *, every=3600.0):
    """Run the screen, and the check in it."""
    source = source if source is not None else FakeSource(cluster_of(6))

    async def run():
        app = TopApp(source.cluster, source.cluster.nodes, source, every_seconds=every)
        async with app.run_test(size=SIZE) as pilot:
            await _until(lambda: source.looks > 0)
            await check(app, pilot, source)

    asyncio.run(run())


async def _until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        await asyncio.sleep(0.02)


def lines(app):
    table = app.screen_stack[0].query_one(DataTable)
    return [" | ".join(str(cell) for cell in table.get_row_at(row)) for row in range(table.row_count)]


def text_of(app, name):
    return str(app.screen_stack[0].query_one(name, Static).render())


def shown(app, name):
    return next((line for line in lines(app) if f"| {name} |" in line), "")


async def refreshed(app, pilot):
    looks = app._source.looks
    await pilot.press("f")
    await _until(lambda: app._source.looks > looks and not app._asking)
    await pilot.pause()


def test_each_node_is_a_line_in_its_rack():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        assert lines(app)[0] == "m1 | head1 | good | - | - | in sync | - | "
        assert lines(app)[1] == "r1 | gpu0001 | good | IDLE | - | in sync | - | "
        assert text_of(app, "#status").startswith("test  6 nodes  6 good  0 s old")
        assert text_of(app, "#racks").split() == ["m1", "1", "r1", "5"]

    drive(check)


def test_a_reason_that_comes_later_has_room_on_the_screen():
    reason = "root@control: the fan of PSU 2 is loud"

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        source.states["gpu0002"] = state("IDLE+DRAIN", reason=reason, by="root")
        await refreshed(app, pilot)
        table = app.screen_stack[0].query_one(DataTable)
        width = table.columns[next(key for key in table.columns if key.value == "reason")].content_width
        assert width >= len(reason)

    drive(check)


def test_what_changes_is_shown():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        source.states["gpu0002"] = state("MIXED", busy=True)
        source.jobs["gpu0002"] = tuple(Job(str(n), "ada", "x") for n in (7, 8, 9))
        source.states["gpu0003"] = state("DOWN", reason="Not responding", by="slurm")
        source.states["gpu0004"] = Unknown("Slurm does not know it")
        await refreshed(app, pilot)
        assert shown(app, "gpu0002").split(" | ")[2:5] == ["busy", "MIXED", "7 ada, 8 ada, 1 more"]
        assert shown(app, "gpu0003").endswith("DOWN: Not responding [slurm@2026-11-28T00:50:00]")
        assert shown(app, "gpu0004").split(" | ")[2:4] == ["UNKNOWN", "UNKNOWN"]
        assert shown(app, "gpu0004").endswith("Slurm does not know it")
        assert "r1 5: 1 down, 1 unknown" in text_of(app, "#racks")

    drive(check)


def test_words_choose_nodes_and_esc_shows_all():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("slash", *"0003")
        await pilot.pause()
        assert [line.split(" | ")[1] for line in lines(app)] == ["gpu0003"]
        await pilot.press("enter")
        assert isinstance(app.focused, DataTable)
        await refreshed(app, pilot)
        assert len(lines(app)) == 1
        await pilot.press("escape")
        await pilot.pause()
        assert len(lines(app)) == 6

    drive(check)


def test_the_chosen_node_stays_chosen():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "down", "down")
        assert app._chosen_name() == "gpu0003"
        source.states["gpu0003"] = state("MIXED", busy=True)
        await refreshed(app, pilot)
        assert app._chosen_name() == "gpu0003"
        await pilot.press("slash", *"gpu")
        await pilot.pause()
        assert app._chosen_name() == "gpu0003"

    drive(check)


def test_a_drain_asks_for_a_reason():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "d")
        assert isinstance(app.screen, Ask)
        await pilot.press("escape")
        await pilot.press("d", "enter")
        await pilot.pause()
        assert source.done == []
        await pilot.press("d", *"ticket 4711", "enter")
        await _until(lambda: source.done)
        assert source.done == [("drain", "gpu0001", "ticket 4711")]
        await _until(lambda: "IDLE+DRAIN" in shown(app, "gpu0001"))

    drive(check)


def test_a_resume_asks_and_only_yes_is_yes():
    source = FakeSource(cluster_of(6))
    source.states["gpu0001"] = state("IDLE+DRAIN", reason="bad DIMM", by="ada")

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "r")
        assert isinstance(app.screen, Confirm)
        await pilot.press("enter", "n")
        await pilot.pause()
        assert source.done == []
        await pilot.press("r", "y")
        await _until(lambda: source.done)
        assert source.done == [("resume", "gpu0001", "bad DIMM")]

    drive(check, source)


def test_a_node_in_service_is_not_resumed():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "r")
        assert len(app.screen_stack) == 1
        assert [note.message for note in app._notifications] == ["gpu0001: IDLE, not drained"]

    drive(check)


def test_a_refusal_is_said_in_its_own_words():
    source = FakeSource(cluster_of(6))
    source.states["gpu0001"] = state("IDLE+DRAIN", reason="x", by="ada")
    source.refuse = WorkloadError("gpu0001 is drained for another reason by now: y")

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "r", "y")
        await _until(lambda: list(app._notifications))
        note = next(iter(app._notifications))
        assert (note.severity, note.message) == ("error", "gpu0001 is drained for another reason by now: y")

    drive(check, source)


def test_why_is_shown_and_closed():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("down", "w")
        assert isinstance(app.screen, Why)
        await _until(lambda: "replace the DIMM" in str(app.screen.query_one("#text", Static).render()))
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    drive(check)


def test_the_keys_are_shown():
    async def check(app, pilot, source):
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    drive(check)


def test_a_lost_head_leaves_the_last_view_and_says_how_old_it_is(monkeypatch):
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        source.silent = RackwrightError("head1 does not answer.", hint="look at its console")
        await refreshed(app, pilot)
        assert "UNKNOWN since then: head1 does not answer. (look at its console)" in text_of(app, "#status")
        assert len(lines(app)) == 6
        app._seen_at -= 125
        app._show_status()
        await pilot.pause()
        assert re.search(r"STALE: 2 min \d+ s old", text_of(app, "#status"))
        source.silent = None
        await refreshed(app, pilot)
        assert "STALE" not in text_of(app, "#status")

    drive(check, every=5)


def test_a_head_that_hangs_stops_no_key():
    source = FakeSource(cluster_of(6))

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        source.hang = threading.Event()
        await pilot.press("f")
        await _until(lambda: source.looks == 2)
        began = time.monotonic()
        await pilot.press("down", "down", "slash", *"gpu", "escape", "f", "f")
        assert time.monotonic() - began < 10
        assert source.looks == 2, "one question at a time"
        source.hang.set()

    drive(check, source)


def test_an_answer_that_comes_while_the_screen_is_taken_down_is_dropped(monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await app.screen_stack[0].query_one("#nodes").remove()
        app.action_refresh()
        await _until(lambda: source.looks == 2 and not app._asking)
        await _until(lambda: all(thread.name != "top" for thread in threading.enumerate()))

    drive(check)
    assert failed == []


def test_before_the_first_answer_nothing_is_said_to_be_well():
    source = FakeSource(cluster_of(6))
    source.silent = RackwrightError("no route to head1.")

    async def check(app, pilot, source):
        await _until(lambda: app._problem)
        await pilot.pause()
        assert text_of(app, "#status").startswith("test  UNKNOWN: no route to head1.")
        await pilot.press("w", "d", "r", "c")
        assert len(app.screen_stack) == 1

    drive(check, source)


def test_what_nodes_write_is_neither_markup_nor_control():
    source = FakeSource(cluster_of(6))
    source.states["gpu0001"] = state("IDLE+DRAIN", reason=FORGED, by="ada")
    source.jobs["gpu0001"] = (Job("7", FORGED, "x"),)

    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        line = shown(app, "gpu0001")
        assert is_harmless(line, "")
        assert "[red]not markup[/red]" in line
        await pilot.press("down", "r")
        await pilot.pause()
        assert "[red]not markup[/red]" in "".join(str(one.render()) for one in app.screen.query(Static))

    drive(check, source)


def test_a_console_that_is_not_there_is_a_sentence():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("c")
        assert [note.message for note in app._notifications] == ["head1 has no BMC declared."]

    drive(check)


def test_typing_words_is_no_command():
    async def check(app, pilot, source):
        await _until(lambda: lines(app))
        await pilot.press("slash", *"drq")
        assert app.screen_stack[0].query_one("#filter", Input).value == "drq"
        assert len(app.screen_stack) == 1

    drive(check)


@pytest.mark.slow
def test_a_thousand_nodes_cost_little():
    source = FakeSource(cluster_of(1000))

    async def check(app, pilot, source):
        await _until(lambda: len(lines(app)) == 1000, seconds=60)
        taken = []
        for turn in range(5):
            for number in range(1, 51):  # a twentieth of the nodes changes
                source.states[f"gpu{number + 100 * turn:04}"] = state("MIXED", busy=True)
            before = time.process_time()
            await refreshed(app, pilot)
            taken.append(time.process_time() - before)
        assert sorted(taken)[2] < 1.5, taken  # of a processor, every five seconds
        before = time.process_time()
        await pilot.press(*["down"] * 20)
        assert time.process_time() - before < 4

    drive(check, source)
