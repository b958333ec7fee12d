"""fio's report, recorded from the releases of Debian 12 and 13."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.storage.fio import WRONG_DATA, Unreadable, complaint_of, parse_fio
from tests.unit.answers import is_harmless
from tests.unit.storage.sites import recorded

BYTES = 2 * 64 * 2**20


@pytest.mark.parametrize("version", ["3.33", "3.39"])
@pytest.mark.parametrize("kind", ["write", "read"])
def test_a_good_run(version, kind):
    run = parse_fio(recorded(f"fio-{version}-{kind}.txt"), kind)
    assert (run.version, run.bytes, run.error, run.complaint) == (version, BYTES, 0, "")
    assert 0.01 < run.seconds < 10
    assert run.gbs == BYTES / run.seconds / 1e9


def test_an_asynchronous_engine_reports_the_same():
    assert parse_fio(recorded("fio-3.33-write-libaio.txt"), "write").bytes == BYTES


@pytest.mark.parametrize("version", ["3.33", "3.39"])
def test_wrong_data_is_named_with_its_place(version):
    run = parse_fio(recorded(f"fio-{version}-wrong.txt"), "read")
    assert run.error == WRONG_DATA
    assert run.complaint.startswith("crc32c: verify failed at file /scratch/")
    assert "offset 10485760" in run.complaint


@pytest.mark.parametrize("version", ["3.33", "3.39"])
def test_a_full_filesystem(version):
    run = parse_fio(recorded(f"fio-{version}-full.txt"), "write")
    assert run.error == 28
    assert "No space left on device" in run.complaint


@pytest.mark.parametrize("version", ["3.33", "3.39"])
def test_without_a_report_its_complaint_is_the_error(version):
    with pytest.raises(Unreadable, match="is not a directory"):
        parse_fio(recorded(f"fio-{version}-nofolder.txt"), "read")


def test_what_was_not_run_has_no_rate():
    assert parse_fio(recorded("fio-3.33-write.txt"), "read").gbs is None


def broken(change):
    document = json.loads(recorded("fio-3.33-write.txt"))
    change(document)
    return json.dumps(document, indent=2)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("jobs"),
        lambda d: d["jobs"].append(d["jobs"][0]),
        lambda d: d["jobs"][0].pop("write"),
        lambda d: d["jobs"][0]["write"].update(io_bytes="many"),
        lambda d: d["jobs"][0]["write"].update(io_bytes=-1),
        lambda d: d["jobs"][0]["write"].update(runtime=True),
        lambda d: d["jobs"][0].update(error=None),
        lambda d: d.pop("fio version"),
    ],
)
def test_a_report_that_lacks_something_is_refused(change):
    with pytest.raises(Unreadable):
        parse_fio(broken(change), "write")


@pytest.mark.parametrize("text", ["", "{", "}\n{\n", "fio: failed\n", recorded("fio-3.33-write.txt")[:3000]])
def test_a_broken_output_is_refused(text):
    with pytest.raises(Unreadable):
        parse_fio(text, "write")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_nothing_a_node_prints_raises_anything_else(text):
    with pytest.raises(Unreadable) as refused:
        parse_fio("{\n" + text + "\n}\n", "write")
    assert is_harmless(str(refused.value))
    assert is_harmless(complaint_of(text))
