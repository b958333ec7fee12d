"""Times as people write them."""

from __future__ import annotations

import re

import pytest
from pydantic import ValidationError

from rackwright.clusterfile.load import load_cluster
from rackwright.roles.slurm.durations import EXAMPLE, PATTERN
from rackwright.roles.slurm.entities import Limits, Partition
from tests.unit.clusterfile.base_file import change, problems_of

FORMS = "e.g. `90m`, `12h`, `14d`, `1-12:00:00` (days-hours:minutes:seconds) or `UNLIMITED`"


@pytest.mark.parametrize(
    ("written", "slurm"),
    [
        ("UNLIMITED", "UNLIMITED"),
        ("unlimited", "UNLIMITED"),
        ("INFINITE", "UNLIMITED"),
        ("7-00:00:00", "7-00:00:00"),
        ("01:00:00", "01:00:00"),
        ("36:00:00", "36:00:00"),
        ("1-00:00", "1-00:00:00"),
        ("1-6", "1-06:00:00"),
        ("14d", "14-00:00:00"),
        ("7 days", "7-00:00:00"),
        ("2 weeks", "14-00:00:00"),
        ("1 day", "1-00:00:00"),
        ("24h", "1-00:00:00"),
        ("12h", "12:00:00"),
        ("36 hours", "1-12:00:00"),
        ("90m", "01:30:00"),
        ("30 min", "00:30:00"),
        ("45s", "00:00:45"),
        ("1d 12h", "1-12:00:00"),
        ("1d12h30m", "1-12:30:00"),
    ],
)
def test_what_slurm_gets(written, slurm):
    assert Partition(max_time=written).max_time == slurm
    assert Limits(max_wall=slurm).max_wall == slurm
    if written not in ("unlimited", "INFINITE"):
        assert re.match(PATTERN, written)


def test_the_schemas_example_is_read():
    assert Partition(max_time=EXAMPLE).max_time == "14-00:00:00"


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("a week", "Not a valid time.", FORMS),
        ("1 month", "Not a valid time.", FORMS),
        ("-1h", "Not a valid time.", FORMS),
        ("1.5h", "Not a valid time.", FORMS),
        ("''", "Not a valid time.", FORMS),
        ("true", "Expected a time.", FORMS),
        ("[1]", "Expected a time.", FORMS),
        ("60", "A time needs a unit.", "e.g. `60m` for minutes, `60h` for hours"),
        ("'60'", "A time needs a unit.", "e.g. `60m` for minutes, `60h` for hours"),
        ("24:00", "This can be hours and minutes, or minutes and seconds.", "e.g. `24h` or `24m`"),
    ],
)
def test_what_is_refused(tmp_path, written, message, hint):
    section = f"munge: {{}}\n  slurm: {{partitions: {{train: {{max_time: {written}}}}}}}"
    (problem,) = problems_of(tmp_path, change(("munge: {}", section)))
    assert (problem.path, problem.message, problem.hint) == (
        "roles.slurm.partitions.train.max_time",
        message,
        hint,
    )


def test_a_short_form_in_the_file(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(
        change(("munge: {}", "munge: {}\n  slurm: {partitions: {train: {default: true, max_time: 14d}}}"))
    )
    slurm = load_cluster(path).by_name["w1"].options["slurm"]
    assert slurm.partitions["train"].max_time == "14-00:00:00"


def test_a_number_is_no_time_in_code_either():
    with pytest.raises(ValidationError, match="needs a unit"):
        Partition(max_time=60)
