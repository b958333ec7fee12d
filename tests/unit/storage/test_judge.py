"""What answers of nodes mean: passes, failures, and what cannot be known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackwright.status import Status
from rackwright.storage.alone import judge_alone
from rackwright.storage.judge import alone_figures, judge_floors, judge_look, judge_space
from rackwright.storage.plan import sizes_of
from rackwright.storage.received import Looked
from rackwright.storage.report import NodeRates
from rackwright.storage.together import judge_together
from rackwright.workload.protocol import Output
from tests.unit.answers import is_harmless
from tests.unit.storage.sites import LOOKED, alone, filesystem, floor, line, recorded, together

ONE = filesystem()
SIZES = sizes_of(ONE, quick=False)
GIB = 2**30


def looked(**changes):
    return Looked(**{**LOOKED, "mounted": ("s", "nfs4"), **changes})


def said(findings):
    return [(found.status.value, found.text) for found in findings]


def test_a_look():
    assert judge_look(ONE, "w1", looked()) is None
    for look, text in (
        (Looked(hung=20.0), "w1: /data: the filesystem did not answer within 20 s"),
        (
            Looked(error="OSError: [Errno 116] Stale file handle"),
            "w1: /data: OSError: [Errno 116] Stale file handle",
        ),
        (looked(mounted=None), "w1: nothing is mounted on /data: the bench would fill another disk"),
    ):
        found = judge_look(ONE, "w1", look)
        assert (found.status, found.text) == (Status.UNKNOWN, text)


def test_space_is_kept():
    size = 1000 * GIB
    kept, needed = 50 * GIB, 2 * 3 * 2 * 64 * 2**20
    assert judge_space(ONE, SIZES, 3, 0, looked(size_bytes=size, free_bytes=kept + needed), "w1") is None
    found = judge_space(ONE, SIZES, 3, 0, looked(size_bytes=size, free_bytes=kept + needed - 1), "w1")
    assert found.status is Status.UNKNOWN
    assert found.text == (
        "w1: /data has 50.7 GiB free; the bench needs 0.75 GiB, and 50 GiB (5 %) must stay free: nothing was written; "
        "lower `bench.size_mib`, or run with --quick"
    )
    saves = judge_space(ONE, SIZES, 3, 100 * GIB, looked(size_bytes=size, free_bytes=400 * GIB), "w1")
    assert "the bench needs 400 GiB" in saves.text
    local = filesystem(kind="local")
    assert (
        judge_space(local, SIZES, 3, 0, looked(size_bytes=size, free_bytes=kept + needed // 3), "w1") is None
    )


def test_inodes_are_kept():
    assert judge_space(ONE, SIZES, 3, 0, looked(files=0, free_files=0), "w1") is None, "no limit of inodes"
    found = judge_space(ONE, SIZES, 3, 0, looked(files=10000, free_files=1000), "w1")
    assert found.text == (
        "w1: /data has 1000 free inodes; the bench makes 624, and 500 must stay free: nothing was written"
    )


def one(text, status=0):
    return judge_alone("w1", Output(text, status, "the step"), SIZES, 900)


def test_a_node_alone():
    found = one(alone())
    [rates] = found.rates
    assert found.version == "3.33"
    assert rates.read_gbs > 0
    assert rates.write_gbs > 0
    assert all(
        status == "WARN" and "too short for a steady rate" in text for status, text in said(found.findings)
    )
    assert found.sound


def test_wrong_data_fails():
    [_, found] = one(alone(read="fio-3.39-wrong.txt", read_exit=1)).findings
    assert found.status is Status.FAIL
    assert found.text.startswith(
        "w1 alone: read: data read is not the data written: crc32c: verify failed at file"
    )


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (line({"write": {"missing": "fio cannot be started: No such file or directory"}}), "UNKNOWN",
         "w1 alone: write: fio cannot be started: No such file or directory: the role storage_bench installs it"),
        (line({"write": {"hung": True}}), "UNKNOWN",
         "w1 alone: write: did not end within 900 s: the filesystem hangs, or is far too slow"),
        (alone(write="fio-3.33-full.txt", read=None, write_exit=2), "UNKNOWN", "w1 alone: write: fio ended with ENOSPC"),
        (alone(write="fio-3.33-nofolder.txt", read=None), "UNKNOWN", "is not a directory (exit status 0)"),
        (line({"error": "cannot switch to user bench: KeyError"}), "UNKNOWN", "w1 alone: cannot switch to user bench: KeyError"),
        (line({}), "UNKNOWN", "w1 alone: fio did not reach write"),
        (line({"write": {"exit_status": 0, "output": "{\n"}}), "UNKNOWN", "fio printed no report (exit status 0)"),
        (line({"surprise": 1}), "UNKNOWN", "unusable answer: surprise: Extra inputs are not permitted"),
        ("srun: error: Unable to allocate resources\n", "UNKNOWN", "it contains 0 results, not one"),
        (alone() + alone(), "UNKNOWN", "it contains 2 results, not one"),
    ],
)  # fmt: skip
def test_what_is_against_a_node_alone(answer, status, text):
    findings = said(one(answer).findings)
    assert findings[0][0] == status
    assert text in findings[0][1]


def errno_of(number):
    """A write that ends with this error, as fio reports errors."""
    text = (
        recorded("fio-3.33-full.txt")
        .replace('"error" : 28', f'"error" : {number}')
        .replace("err=28", f"err={number}")
    )
    return line({"write": {"exit_status": 1, "output": text}})


@pytest.mark.parametrize(
    ("number", "status"), [(5, "FAIL"), (116, "FAIL"), (22, "UNKNOWN"), (122, "UNKNOWN")]
)
def test_errors_of_the_filesystem_fail_and_others_are_unknown(number, status):
    [found] = one(errno_of(number)).findings
    assert found.status == status
    assert ("needs `bench: {direct: false}`" in found.text) is (number == 22)


def test_a_job_that_the_manager_ends_is_unknown_with_its_last_words():
    [found] = one("slurmstepd: error: *** STEP 7.0 CANCELLED DUE TO TIME LIMIT ***\n", 124).findings
    assert "the step exited 124: slurmstepd: error" in found.text


def test_floors_name_every_node_under_them():
    given = filesystem(floor=floor(read_gbs=5, write_gbs=2))
    rates = (NodeRates("w1", 6.0, 1.0), NodeRates("w2", 4.0, 1.5), NodeRates("w3", 7.0, None))
    figures = alone_figures(given, rates)
    assert [(one.key, one.value, one.node, one.under) for one in figures] == [
        ("read_gbs", 4.0, "w2", True),
        ("write_gbs", 1.0, "w1", True),
    ]
    assert said(judge_floors(given, figures, rates)) == [
        ("FAIL", "w2: read, one node alone: 4 GB/s is below the floor of 5 (the vendor's sizing)"),
        ("FAIL", "w[1-2]: write, one node alone: 1 GB/s is below the floor of 2 (the vendor's sizing)"),
    ]
    high = (NodeRates("w1", 5.0, 2.0),)
    assert judge_floors(given, alone_figures(given, high), high) == ()


def test_no_floor_is_a_warning_and_a_floor_without_a_figure_is_unknown():
    rates = (NodeRates("w1", 5.0, 2.0),)
    assert said(judge_floors(ONE, alone_figures(ONE, rates), rates)) == [
        ("WARN", "data: measured, not judged: no floor is declared")
    ]
    given = filesystem(floor=floor(read_gbs=1, metadata_ops=100))
    assert said(judge_floors(given, alone_figures(given, rates), rates)) == [
        ("UNKNOWN", "a floor is declared for metadata_ops, but there is no figure")
    ]
    assert judge_floors(ONE, (), ()) == ()


NODES = ("w1", "w2", "w3")


def all_of(text, given=ONE, status=0):
    return judge_together(given, NODES, Output(text, status, "the step"), SIZES)


def test_all_nodes_together():
    found = all_of(together(3, seconds=0.5), filesystem(floor=floor(together_read_gbs=0.9, metadata_ops=900)))
    assert found.findings == ()
    bytes_ = 3 * 2 * 64 * 2**20
    assert {one.key: (round(one.value, 6), one.floor, one.under) for one in found.figures} == {
        "together_read_gbs": (round(bytes_ / 0.5 / 1e9, 6), 0.9, True),
        "together_write_gbs": (round(bytes_ / 0.5 / 1e9, 6), None, False),
        "metadata_ops": (1200.0, 900.0, False),
        "create_ops": (1200.0, None, False),
        "stat_ops": (1200.0, None, False),
        "remove_ops": (1200.0, None, False),
    }
    assert [one.node for one in found.rates] == list(NODES)


def changed(change, nodes=3):
    document = json.loads(together(nodes).partition(" ")[2])
    change(document)
    return line(document)


def trouble(kind, text, phases=2):
    def change(document):
        document["errors"] = [{"node": "w2", "kind": kind, "text": text}]
        document["errors_count"] = 1
        document["phases"] = document["phases"][:phases]

    return changed(change)


@pytest.mark.parametrize(("phase", "phases"), [("read", 2), ("compare", 3)])
def test_wrong_data_fails_and_gives_no_rate(phase, phases):
    text = f"rank 3: {phase}: bytes 0 to 4096 of the file of rank 5 differ from what was written"
    found = all_of(trouble("wrong", text, phases))
    assert said(found.findings) == [("FAIL", f"together: w2: {text}")]
    assert [one.key for one in found.figures] == ["together_write_gbs"]
    assert [one.read_gbs for one in found.rates] == [None] * 3


def test_of_a_large_file_a_sample_is_compared():
    given = filesystem(bench={"size_mib": 1024})
    document = json.loads(together(3, size=1024).partition(" ")[2])
    document["phases"][2]["nodes"] = [[2 * 256 * 2**20, 0.5]] * 3
    found = judge_together(given, NODES, Output(line(document), 0), sizes_of(given, quick=False))
    assert found.findings == ()
    assert "together_read_gbs" in [one.key for one in found.figures]


@pytest.mark.parametrize(
    ("kind", "text", "status"),
    [
        ("hung", "rank 3: read: did not answer in time", "UNKNOWN"),
        ("error", "rank 3: write: OSError: [Errno 28] No space left on device", "UNKNOWN"),
        ("error", "rank 3: write: OSError: [Errno 5] Input/output error", "FAIL"),
        ("error", "rank 3: stat: OSError: [Errno 116] Stale file handle", "FAIL"),
    ],
)
def test_what_ranks_meet(kind, text, status):
    found = all_of(trouble(kind, text))
    assert said(found.findings)[0] == (status, f"together: w2: {text}")
    assert found.hung is (kind == "hung")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it contains 0 results"),
        (together(2), "a phase is not of 3 nodes"),
        (changed(lambda d: d["phases"].reverse()), "its phases are not in their order"),
        (changed(lambda d: d["phases"][0]["nodes"][0].__setitem__(1, -1)), "phases.0.nodes.0.1"),
        (changed(lambda d: d.update(direct="perhaps")), "direct"),
        (changed(lambda d: d["phases"][1].update(nodes=[[1, 0.5]] * 3)), "together: read: no rate"),
        (changed(lambda d: d["phases"][1].update(nodes=[[128 * 2**20, 0.0]] * 3)), "together: read: no rate"),
        (changed(lambda d: d["phases"][2].update(nodes=[[2**20, 0.5]] * 3)), "together: read: no rate"),
        (changed(lambda d: d.update(phases=d["phases"][:2])), "together: read: no rate"),
        (
            changed(lambda d: d["phases"][1].update(nodes=[[128 * 2**20, 1e-9]] * 3)),
            "is more than 3 nodes can",
        ),
        (changed(lambda d: d.update(direct=False)), "the filesystem refuses O_DIRECT"),
    ],
)
def test_what_cannot_be_known(text, why):
    found = all_of(text)
    assert [one.status for one in found.findings] == [Status.UNKNOWN]
    assert why in found.findings[0].text


def test_what_the_job_printed_is_shown_where_ranks_hang():
    text = trouble("hung", "rank 3 never started")
    found = all_of("LookupError: unknown encoding\n" + text)
    assert "together: the job printed: LookupError: unknown encoding" in [one.text for one in found.findings]
    assert len(all_of(text).findings) == len(found.findings) - 1


def test_without_o_direct_as_declared_nothing_is_unknown():
    given = filesystem(bench={"direct": False})
    text = changed(lambda d: d.update(direct=False))
    assert judge_together(given, NODES, Output(text, 0), sizes_of(given, quick=False)).findings == ()


def test_a_node_far_under_the_others_is_a_warning():
    found = all_of(changed(lambda d: d["phases"][0]["nodes"][2].__setitem__(1, 5.0)))
    assert said(found.findings) == [
        ("WARN", "together: write: w3 under half of the median of all nodes (0.0268 of 0.268 GB/s)")
    ]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_whatever_a_node_prints_is_unknown_and_printable(text):
    for found in (
        *one(f"rackwright-storage {text}\n").findings,
        *all_of(f"rackwright-storage {text}\n").findings,
    ):
        assert found.status is Status.UNKNOWN
        assert is_harmless(found.text)
