"""A plan as a page: whole, closed to the network, safe from what nodes write, and small at a thousand nodes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rackwright.cli import run
from rackwright.plan.changes import Change, text_diff
from rackwright.plan.node_plan import NodePlan, PlannedOperation, PlanResult
from rackwright.plan.page import plan_page
from tests.unit.plan.thousand import thousand_nodes

HOSTILE = "\"><script>alert(1)</script><img src=http://203.0.113.9/x onerror=alert(2)> {{ 7*7 }} ' &amp;"
WHEN = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


class Tags(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def plan_of(*nodes: NodePlan, file: str = "lab.yaml") -> PlanResult:
    return PlanResult("lab", file, "0" * 64, {node.node: node for node in nodes}, "1" * 64)


def write(path: str, after: str, before: str | None = None) -> PlannedOperation:
    there = None if before is None else "file 644 root:root"
    change = Change("file", path, there, "file 644 root:root", text_diff(path, before, after))
    return PlannedOperation("slurm", f"Write {path}", (change,), (f"install -m 644 /dev/stdin {path}",))


def test_the_header_says_what_was_planned():
    page = Tags(plan_page(plan_of(NodePlan("n1", (write("/etc/a", "b\n", "a\n"),)), NodePlan("n2")), WHEN))
    for text in (
        "Plan for lab",
        "lab.yaml",
        "0" * 64,
        "1" * 64,
        "2026-11-27 12:00 UTC",
        "install -m 644 /dev/stdin /etc/a",
    ):
        assert text in page.text
    assert re.search(r"2\s*nodes\b", page.text)
    assert re.search(r"1\s*nodes that change", page.text)
    assert page.open == []


def test_what_nodes_wrote_is_text():
    disk = Change("disk", f"/dev/sda{HOSTILE}", HOSTILE, "xfs", erases="S1")
    unit = Change("unit", HOSTILE, HOSTILE, "restarted", because=HOSTILE, disruptive=True)
    operation = PlannedOperation(HOSTILE, HOSTILE, (disk, unit), (HOSTILE,))
    plan = plan_of(
        NodePlan("n1", (operation, write("/etc/a", f"{HOSTILE}\n", f"-{HOSTILE}\n")), note=HOSTILE),
        NodePlan("n2", error=HOSTILE),
        NodePlan("n3", error=f"n3 {HOSTILE}", unreachable=True),
        NodePlan("n4", error=f"n4 {HOSTILE}", unreachable=True),
        NodePlan("n5", reboot=(Change("reboot", HOSTILE, HOSTILE, HOSTILE),), after_reboot=(HOSTILE,)),
        *(NodePlan(f"m{number}", (write("/etc/b", f"{number}{HOSTILE}\n"),)) for number in range(9)),
        file=HOSTILE,
    )
    harmless = Tags(plan_page(plan, WHEN).replace(HOSTILE, ""))
    page = Tags(plan_page(plan, WHEN))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert page.text.count(HOSTILE) > 20
    assert page.open == harmless.open == []


def test_nothing_is_loaded_and_no_other_script_runs():
    text = plan_page(plan_of(NodePlan("n1", (write("/etc/a", "b\n"),))), WHEN)
    page = Tags(text)
    assert not {name for name, _ in page.attributes} & {"src", "href", "action", "srcset"}
    assert "url(" not in text
    assert "@import" not in text
    script = text[text.index("<script>") + 8 : text.index("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


def test_equal_changes_stand_once_and_others_by_their_differences():
    nodes = [NodePlan(f"n{number}", (write("/etc/same", "same line\n"),)) for number in range(1, 10)]
    own = [
        NodePlan(f"w{number}", (write("/etc/own", f"common\nNodeName=w{number}\n"),))
        for number in range(1, 10)
    ]
    text = Tags(plan_page(plan_of(*nodes, *own), WHEN)).text
    assert text.count("+same line") == 1
    assert text.count("+common") == 3
    assert all(text.count(f"+NodeName=w{number}") == 1 for number in range(1, 10))


def test_masked_values_stay_masked():
    change = Change(
        "file",
        "/etc/munge/munge.key",
        "file 400 munge:munge, content (sensitive)",
        "file 400 munge:munge, content (sensitive)",
    )
    plan = plan_of(NodePlan("n1", (PlannedOperation("munge", "Write the key", (change,), ()),)))
    assert "file /etc/munge/munge.key" in Tags(plan_page(plan, WHEN)).text


def test_a_thousand_nodes_make_a_page_that_a_browser_opens():
    page = plan_page(thousand_nodes(), WHEN)
    assert len(page.encode()) < 5_000_000
    assert "gpu[0001-1000]" in page
    assert Tags(page).open == []


def test_a_stored_plan_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    stored, page = tmp_path / "plan.json", tmp_path / "plan.html"
    plan = plan_of(NodePlan("n1", (write("/etc/a", "b\n", "a\n"),)))
    stored.write_text(json.dumps(plan.to_json()))
    assert run(["plan", "--from", str(stored), "--html", str(page)]) == 2
    assert "n1: Write /etc/a" in capsys.readouterr().out
    assert "Write /etc/a" in page.read_text()
    assert run(["plan", "--from", str(stored), "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == json.loads(stored.read_text())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "plan needs a cluster file or --from PLAN."),
        (["a.yaml", "--from", "p.json"], "--from shows a plan as it was made: leave out FILE, --limit"),
        (
            ["--from", "p.json", "--limit", "n1"],
            "--from shows a plan as it was made: leave out FILE, --limit",
        ),
    ],
)
def test_a_file_or_a_stored_plan(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    assert run(["plan", *arguments]) == 64
    assert message in capsys.readouterr().err


def test_a_page_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    stored = tmp_path / "plan.json"
    stored.write_text(json.dumps(plan_of(NodePlan("n1")).to_json()))
    assert run(["plan", "--from", str(stored), "--html", str(tmp_path / "no" / "plan.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err
