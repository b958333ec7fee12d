"""A head that answers garbage: a WorkloadError or NoAnswer that can be shown, and no name of its making in a command."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.command import CommandResult
from rackwright.errors import RackwrightError
from rackwright.workload.protocol import Output
from rackwright.workload.slurm import records, reservations
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.slurm.output import (
    LINE_MAX_CHARACTERS,
    parse_config,
    parse_fields,
    parse_nodes,
    parse_rows,
)
from rackwright.workload.slurm.srun import srun_output
from rackwright.workload.states import DrainedBy, NoAnswer, run_of
from tests.unit.answers import any_text, few, hostile, is_harmless, lines, many, memory_limit
from tests.unit.workload.test_slurm import CLUSTER, ROWS

NODE = (
    "NodeName=gpu1 State=IDLE+DRAIN CPUTot=2 RealMemory=9 Gres=gpu:8 Reason=a fan [ada@2026-11-21T20:00:00]"
)
MARK = "MARK"
"""In an answer: what this call asked squeue to begin each row with."""
JOBS = (f"{MARK}|7|ada|train", f"{MARK}|8_[1-3]|bob|x")
ANSWERS = st.one_of(
    lines(
        *ROWS.splitlines(),
        NODE,
        *JOBS,
        "slurm 24.11.5",
        "HealthCheckProgram = x",
        "HealthCheckInterval = 9 s",
    ).map("\n".join),
    any_text(),
)


class Head:
    """Prints one text; keeps what it was asked to change."""

    def __init__(self, text: str) -> None:
        self.text, self.commands = text, []  # type: ignore[var-annotated]

    def run(self, node: str, command: str, *, stdin: Any = None, timeout: float) -> CommandResult:
        self.commands.append(command)
        mark = re.search(r"--format='([0-9a-f]{16})\|", command)
        return CommandResult(command, 0, self.text.replace(MARK, mark[1]) if mark else self.text, "")


def asked(text: str) -> None:
    head = Head(text)
    manager = Slurm(CLUSTER, head)  # type: ignore[arg-type]
    questions: tuple[Callable[[], Any], ...] = (
        manager.version,
        manager.states,
        lambda: manager.state("gpu1"),
        lambda: manager.jobs("gpu1"),
        lambda: manager.health_schedule(lambda command: text),
        lambda: manager.drain(["gpu1"], "R1", 0.0),
        lambda: manager.resume(["gpu1"], "R1"),
        lambda: SlurmOnNode("gpu1", lambda command: text).state(),
        lambda: SlurmOnNode("gpu1", lambda command: text).shares(),
        lambda: srun_output(CommandResult("srun", 0, text, "")).problem,
    )
    for question in questions:
        with memory_limit():
            try:
                answer = question()
            except (RackwrightError, NoAnswer) as error:
                answer = str(error)
        assert is_harmless(repr(answer)), question
        for one in (
            answer.values()
            if isinstance(answer, dict)
            else answer
            if isinstance(answer, (list, tuple))
            else ()
        ):
            assert is_harmless(getattr(one, "reason", "")), question
            assert is_harmless(str(one)), question
    changes = [command for command in head.commands if "scontrol update" in command]
    assert {"NodeName='gpu1'" in command for command in changes} <= {True}
    assert not any(is_foreign(command) for command in changes)


def is_foreign(command: str) -> bool:
    """Whether it has words besides the two that drain or resume the node."""
    return command not in (
        "scontrol update NodeName='gpu1' State=DRAIN Reason='rackwright: R1'",
        "scontrol update NodeName='gpu1' State=RESUME",
    )


@given(ANSWERS)
@few
def test_any_answer(text: str) -> None:
    asked(text)


@pytest.mark.proof
@given(ANSWERS)
@many
def test_any_answer_at_length(text: str) -> None:
    asked(text)


@pytest.mark.parametrize("kind", sorted(hostile()))
def test_garbage(kind: str) -> None:
    asked(hostile()[kind])


RECORDS = (
    "# cluster", "lab", "# qos", "normal||0|||00:00:00||1.0||||||", "# account", "root|d|o", "# user", "a|root|None",
    "# association", "root||||1|||||||||", "root|a||root|1|||||||||", "# tres", "cpu|", "# complete",
)  # fmt: skip
RESERVED = ("# zone +0100", "ReservationName=m StartTime=2026-11-23T00:00:00 EndTime=2026-11-24T00:00:00 Nodes=n[1-2] Users=(null) Accounts=a Flags=MAINT", "# complete")  # fmt: skip


@given(lines(*RECORDS), lines(*RESERVED), any_text())
@few
def test_records_and_reservations_are_read_or_refused(
    rows: list[str], reserved: list[str], text: str
) -> None:
    with memory_limit():
        for said in (rows, [*RECORDS[:4], *rows, *RECORDS[4:]], text.splitlines()):
            with contextlib.suppress(ValueError):
                records.parse(said)
        for said in (reserved, [*RESERVED[:1], *reserved, *RESERVED[1:]]):
            with contextlib.suppress(ValueError, KeyError):
                reservations.parse(said)
        parse_config(text)
        parse_fields(text)


@pytest.mark.parametrize("name", ["bob,root", "a b", "$(reboot)", "x=y", "a;b", "bob\x1b[1m", "x" * 20_000])
def test_a_name_that_would_be_several_is_refused(name: str) -> None:
    rows = [line.replace("root|a|", f"root|{name}|") for line in RECORDS]
    with pytest.raises(ValueError, match="sacctmgr"):
        records.parse(rows)
    assert records.parse(RECORDS) is not None


def test_a_job_named_by_a_user_forges_no_row() -> None:
    forged = "99|root|x\n|root|forged\nhint|: rm|-rf\nMARK|99|root|x\n0123456789abcdef|99|root|x"
    rows = ("|7|ada|train\n" + forged.replace(MARK, "mark"), "|8|bob|\x1b[2Jx\u2028y|z", "||root|no number")
    head = Head("".join(f"{MARK}{row}\n" for row in rows))
    slurm = Slurm(CLUSTER, head)  # type: ignore[arg-type]
    for _ in range(2):
        jobs = [(job.id, job.user, job.name) for job in slurm.jobs("gpu1")]
        assert jobs == [("7", "ada", "train"), ("8", "bob", "\\x1b[2Jx\\u2028y|z")]
    assert len(set(head.commands)) == 2  # a word that was seen once is of no use


def test_reasons_are_printable_and_a_run_is_a_name() -> None:
    text = "NodeName=gpu1 State=IDLE+DRAIN Reason=rackwright: $(reboot)\x1b[2J [root@now]"
    state = parse_nodes(text)["gpu1"].state
    assert (state.reason, state.run, state.drained_by) == (
        "rackwright: $(reboot)\\x1b[2J",
        None,
        DrainedBy.PERSON,
    )
    assert run_of("rackwright: 20261121T120000Z-abc123") == "20261121T120000Z-abc123"
    [row] = parse_rows("main|w1|drained|ada\x07|now|a\x1b[1mb\n")
    assert (row.user, row.reason) == ("ada\\x07", "a\\x1b[1mb")


@pytest.mark.parametrize("text", ["x" * (LINE_MAX_CHARACTERS + 1), "a\n" * 100_001])
def test_a_table_that_is_too_long_is_no_answer(text: str) -> None:
    for parse in (parse_rows, parse_nodes):
        with pytest.raises(NoAnswer, match="lines or a line longer than"):
            parse(text)


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "-1", "1e9"])
def test_a_number_that_is_none_is_not_known(number: str) -> None:
    assert parse_nodes(f"NodeName=gpu1 State=IDLE CPUTot={number}")["gpu1"].cpus is None


def test_an_error_that_a_step_printed_is_quoted_printable() -> None:
    assert (
        Output("srun: error: \x1b[2J gone", 1, "srun").problem == "srun exited 1: srun: error: \\x1b[2J gone"
    )
    assert srun_output(CommandResult("srun", 0, f"# srun exit status {'9' * 5000}\n", "")).exit_status is None
