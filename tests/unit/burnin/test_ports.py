"""Ports by ib_write_bw: published tables, pairs of one leaf, and the script against a real shell."""

from __future__ import annotations

import os
import subprocess
from ipaddress import IPv4Address

import pytest

from rackwright.burnin.port_output import (
    Asked,
    LatencyFigure,
    judge_latency,
    judge_ports,
    parse_latency,
    parse_perftest,
)
from rackwright.burnin.ports import devices_of, leaf_pairs, measure_ports, port_step, spine_pairs
from rackwright.burnin.rails import mapped_gid, rails_of, units_of
from rackwright.catalog.read import catalogue
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric
from rackwright.model.types import LinkKind, NodeRole
from rackwright.status import Status
from rackwright.workload.protocol import Output
from tests.factories import RunsSlurm, make_cluster, make_node
from tests.unit.burnin.fabrics import two_leaves

H100 = catalogue()["hgx-h100"]
FLOOR = H100.floor(Metric.IB_WRITE_GBPS)
RULE = "-" * 87 + "\n"

# Recorded. perftest between two nodes of Slingshot, `ib_write_bw -D 5 --report_gbits`, public HPE documentation of
# CSM, read 2026-11-23: with -D there is no peak.
SLINGSHOT = f"""\
{RULE}                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Number of qps   : 1            Transport type : IB
 Connection type : RC           Using SRQ      : OFF
 Link type       : Ethernet
 GID index       : 3
{RULE} local address: LID 0000 QPN 0x0ddd PSN 0xec1a24 RKey 0x04c4bd VAddr 0x007f1e2f010000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:01:04
{RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      560960           0.00               98.03              0.186974
{RULE}"""

# Recorded. 400 Gb/s InfiniBand, public Nebius example for SkyPilot, read 2026-11-23.
NEBIUS = f"""\
{RULE}                    Send BW Test
 Dual-port       : OFF          Device         : mlx5_0
 Link type       : IB
{RULE} local address: LID 0x4624 QPN 0x0127 PSN 0x45bd8e
 remote address: LID 0x461b QPN 0x0127 PSN 0x1d3746
{RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1000             357.12             353.53             0.674308
{RULE}"""

# Recorded. From the memory of an A40 with dma-buf, public OpenShift article, read 2026-11-23; tabs as printed.
CUDA = f"""\
 WARNING: BW peak won't be measured in this run.
Perftest doesn't supports CUDA tests with inline messages: inline size set to 0
{RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      10384867         0.00               181.46 \t\t     0.346100
{RULE}deallocating GPU buffer 00007f3dfa600000
destroying current CUDA Ctx
"""
# Recorded. perftest 25.01 between two emulated machines, 2026-11-25: it wrote "Correlation coefficient r^2: 0.484865 < 0.9",
# exited 0, and so did the other end with the same row.
WITHOUT_CLOCK = f"""\
 WARNING: BW peak won't be measured in this run.
{RULE} #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1265           0.000000            0.000000            0.000000
{RULE}"""
PAIR = ("w1", "w2")


def rail(number, table, memory="host"):
    return f"# rail {number} mlx5_{number} {memory}\n{table}"


def labelled(node, text):
    return "".join(f"{node} {line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("table", "gbps", "memory"), [(SLINGSHOT, 98.03, "host"), (NEBIUS, 353.53, "host"), (CUDA, 181.46, "gpu")]
)
def test_published_tables_are_read(table, gbps, memory):
    [found] = parse_perftest(rail(3, table, memory), PAIR)
    assert (found.rail, found.device, found.gbps, found.memory) == (3, "mlx5_3", gbps, memory)


def test_a_slow_rail_is_named_with_both_nodes():
    text = labelled("w1", rail(0, NEBIUS.replace("353.53", "385.10")) + rail(1, NEBIUS))
    figures, _, [found] = judge_ports(text, PAIR, Asked(2, FLOOR))
    assert [one.gbps for one in figures] == [385.10, 353.53]
    assert found.status is Status.FAIL
    assert found.text.startswith(
        "ib_write_bw: rail 1 (mlx5_1) of w1 -> w2 reaches 353.53 Gb/s from host memory, below the floor of"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("w1 ib_write_bw: not found (package perftest)\n", "ib_write_bw: not found (package perftest)"),
        ("w2 ib_write_bw: not found (package perftest)\n", "ib_write_bw: not found (package perftest)"),
        ("", "no output"),
        (labelled("w1", rail(0, "Couldn't connect to w2:18515\n")), "Couldn't connect to w2:18515"),
        (labelled("w1", rail(0, NEBIUS.split(" 65536")[0])), "MsgRate[Mpps]"),
    ],
)
def test_a_rail_without_a_figure_is_unknown_by_name(text, says):
    figures, _, [found] = judge_ports(text, PAIR, Asked(1, FLOOR))
    assert (figures, found.status) == ([], Status.UNKNOWN)
    assert found.text.startswith("ib_write_bw: 0 of 1 rails of w1 -> w2 have a figure: ")
    assert found.text.endswith(says)


def test_a_clock_that_perftest_could_not_calibrate_accuses_no_port():
    text = labelled("w1", rail(0, NEBIUS.replace("353.53", "385.10")) + rail(1, WITHOUT_CLOCK))
    figures, _, [found] = judge_ports(text, PAIR, Asked(2, FLOOR))
    assert [one.rail for one in figures] == [0]
    assert found.status is Status.UNKNOWN
    assert (
        "rail 1 (mlx5_1) of w1 -> w2 wrote 1265 messages in a time that perftest could not measure"
        in found.text
    )


def test_a_port_that_moved_nothing_is_slow():
    nothing = WITHOUT_CLOCK.replace("1265", "0   ")
    _, _, [found] = judge_ports(labelled("w1", rail(0, nothing)), PAIR, Asked(1, FLOOR))
    assert (found.status, "reaches 0 Gb/s" in found.text) == (Status.FAIL, True)


def test_pairs_are_of_one_leaf():
    nodes = [make_node(f"w{n}", n, switch=f"leaf{n % 2}") for n in range(1, 8)]
    leaf = {node.name: node.switch for node in nodes}
    rounds = leaf_pairs(make_cluster(*nodes), nodes)
    for pairs in rounds:
        names = [name for pair in pairs for name in pair]
        assert len(names) == len(set(names))
        assert all(leaf[one] == leaf[two] for one, two in pairs)
    assert {name for pairs in rounds for pair in pairs for name in pair} == set(leaf)
    bare = [make_node("w1", 1), make_node("w2", 2)]
    assert leaf_pairs(make_cluster(*bare), bare) == [[("w1", "w2")]], "no switch declared"


class Manager:
    def __init__(self, text=""):
        self.text, self.steps = text, []

    def run(self, step):
        self.steps.append(step)
        return Output(self.text, 0)

    def cancel(self):
        """Nothing runs."""


def members(*switches, **changes):
    return tuple(
        make_node(f"w{n}", n, switch=switch, **{"sku": H100} | changes)
        for n, switch in enumerate(switches, 1)
    )


def cluster(*nodes, **settings):
    head = make_node("head1", 200, NodeRole.HEAD, options={"slurm": RunsSlurm()})
    return make_cluster(head, *nodes, burnin=Burnin(**settings))


def test_out_of_scope_by_name():
    bare = tuple(make_node(f"w{n}", n) for n in (1, 2))
    without = measure_ports(Manager(), cluster(*bare), bare, print).findings
    assert [one.text for one in without] == ["ib_write_bw: SKU test-node declares no fabric port"]
    manager = Manager()
    alone = members("leaf1")
    found = measure_ports(manager, cluster(*alone), alone, print).findings
    assert [one.text for one in found] == ["ib_write_bw: w1 has no peer on its leaf"]
    assert all(one.status is Status.OUT_OF_SCOPE for one in (*without, *found))
    assert manager.steps == []


LATENCY = f"""\
{RULE}                    RDMA_Read Latency Test
{RULE} #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]
 2       1000          5.35           11.78        5.49               5.50           0.18            5.74                   11.78
{RULE}"""
"""Recorded. ib_read_lat over RoCE, a public how-to for GPU virtual machines, read 2026-11-25."""


def test_published_latencies_are_read():
    [found] = parse_latency(rail(2, LATENCY, "latency"), PAIR)
    assert found == LatencyFigure(PAIR, 2, "mlx5_2", 5.49, 5.74)
    assert parse_latency(rail(2, NEBIUS, "host"), PAIR) == []


def test_a_rail_that_takes_twice_as_long_as_the_others_is_named():
    figures = [LatencyFigure(PAIR, n, f"mlx5_{n}", 2.0 if n else 4.5, 5.0) for n in range(8)]
    [found] = judge_latency(figures)
    assert found.status is Status.WARN
    assert found.text == (
        "ib_read_lat: rail 0 (mlx5_0) of w1 -> w2 takes 4.5 us, 2.2 times the median of 8 rails below one leaf (2 us)"
    )
    assert judge_latency(figures[:7]) == [], "too few to compare"


def all_rails(rails, *memories):
    tables = [rail(n, NEBIUS.replace("353.53", "392.1"), memory) for n in range(rails) for memory in memories]
    return "".join(tables + [rail(n, LATENCY, "latency") for n in range(rails)])


def test_all_rails_of_a_pair_pass():
    pair = members("leaf1", "leaf1")
    manager = Manager(labelled("w1", all_rails(8, "host", "gpu")))
    stage = measure_ports(manager, cluster(*pair), pair, lambda said: None)
    assert (len(stage.figures), len(stage.latencies), stage.findings) == (16, 8, ())
    assert len(manager.steps) == 1, "one unit has no spines to cross"


def test_across_the_spines_every_node_meets_one_below_other_leaves():
    declared = two_leaves(units=3, size=3)
    workers = [node for node in declared.nodes if node.name != "head1"]
    unit = {name: number for number, names in enumerate(units_of(declared, workers)) for name in names}
    rounds = spine_pairs(declared, workers)
    for pairs in rounds:
        names = [name for pair in pairs for name in pair]
        assert len(names) == len(set(names))
        assert all(unit[one] != unit[two] for one, two in pairs)
    assert {name for pairs in rounds for pair in pairs for name in pair} == {node.name for node in workers}


def test_units_of_different_sizes_leave_no_node_out_across_the_spines():
    nodes = [make_node(f"w{n}", n, switch="leaf1" if n < 2 else "leaf2") for n in range(1, 6)]
    rounds = spine_pairs(make_cluster(*nodes), nodes)
    assert {name for pairs in rounds for pair in pairs for name in pair} == {f"w{n}" for n in range(1, 6)}


def test_declared_devices_are_used_with_their_roce_v2_gid():
    declared = two_leaves()
    first = declared.by_name["w1"]
    assert [(one.rail, one.device, one.gid) for one in rails_of(declared, first)] == [
        (n, f"rxe_rail{n}", f"0000:0000:0000:0000:0000:ffff:0a01:{n:02x}01") for n in (0, 1)
    ]
    script = port_step(declared, [("w1", "w2")]).command[-1]
    assert (
        'w1) server="w2" client=yes devices="rxe_rail0:1 rxe_rail1:1" '
        'gids="0000:0000:0000:0000:0000:ffff:0a01:0001 0000:0000:0000:0000:0000:ffff:0a01:0101";;'
    ) in script
    assert 'w2) server="" client=no' in script
    infiniband = two_leaves(kind=LinkKind.INFINIBAND)
    assert 'gids="";;' in port_step(infiniband, [("w1", "w2")]).command[-1]


def test_a_device_without_its_declared_gid_is_a_failure_by_name():
    text = labelled(
        "w1", f"# rail 0 rxe_rail0 no-gid {mapped_gid(IPv4Address('10.1.0.1'))}\n" + rail(0, NEBIUS)
    )
    [found] = judge_ports(text, PAIR, Asked(1))[2]
    assert found.status is Status.FAIL
    assert "rail 0 (rxe_rail0) of w1 has no RoCE v2 GID 0000:0000:0000:0000:0000:ffff:0a01:0001" in found.text


def test_software_devices_have_no_floor():
    declared = two_leaves(units=1)
    manager = Manager(labelled("w1", all_rails(2, "host").replace("mlx5_", "rxe_rail")))
    stage = measure_ports(
        manager, declared, (declared.by_name["w1"], declared.by_name["w2"]), lambda said: None
    )
    [found] = stage.findings
    assert (found.status, len(stage.figures)) == (Status.OUT_OF_SCOPE, 2)
    assert found.text.startswith("ib_write_bw: software devices are measured, not judged")


def test_slow_machines_have_more_time():
    declared = two_leaves()
    slow = declared.model_copy(update={"ssh": declared.ssh.model_copy(update={"time_factor": 10})})
    once, tenfold = (port_step(one, [("w1", "w2")]) for one in (declared, slow))
    assert tenfold.timeout_seconds > 5 * once.timeout_seconds
    assert "timeout 255 " in tenfold.command[-1]


def test_devices_are_the_ones_that_nccl_uses():
    assert devices_of("mlx5_0,mlx5_3:1,mlx5_4") == ("mlx5_0", "mlx5_3", "mlx5_4")
    assert devices_of("=mlx5_0,mlx5_3") == ("mlx5_0", "mlx5_3")
    assert devices_of("mlx5") == devices_of("^mlx5_1,mlx5_2") == devices_of("") == ()


STUB = """#!/bin/sh
case "$*" in *--help*) echo "  --use_cuda_dmabuf"; exit 0;; esac
echo "called ${0##*/} $*" >> "$LOG"
case "${0##*/} $*" in
ib_write_bw*) cat "$TABLE"; [ ! -e "$TABLE.next" ] || mv "$TABLE.next" "$TABLE";;
ib_read_lat*w2) cat "$LATENCY";;
esac
"""
"""As perftest does: at the end of ib_write_bw both ends print the table, at that of ib_read_lat the client alone."""


def run_script(tmp_path, declared, hostname, devices=(), gids=(), tables=(NEBIUS,)):
    """The script of a pair as node `hostname`; hostname and perftest are stubs, sh is this machine's.

    ib_write_bw prints the first of the tables once and the last one from then on.
    """
    for program in ("ib_write_bw", "ib_read_lat"):
        (tmp_path / program).write_text(STUB)
    (tmp_path / "hostname").write_text(f"#!/bin/sh\necho {hostname}\n")
    for program in ("ib_write_bw", "ib_read_lat", "hostname"):
        (tmp_path / program).chmod(0o755)
    for name, table in zip(("table", "table.next"), tables, strict=False):
        (tmp_path / name).write_text(table)
    (tmp_path / "latency").write_text(LATENCY)
    script = port_step(declared, [PAIR]).command[-1]
    script = script.replace("/sys/class/infiniband", str(tmp_path / "sys")).replace("sleep 1", "sleep 0")
    for device in devices:
        port = tmp_path / "sys" / device / "ports" / "1"
        (port / "gids").mkdir(parents=True)
        (port / "gid_attrs" / "types").mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
        for index, (gid, kind) in enumerate(gids):
            (port / "gids" / str(index)).write_text(f"{gid}\n")
            (port / "gid_attrs" / "types" / str(index)).write_text(f"{kind}\n")
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LOG": str(tmp_path / "log"),
        "TABLE": str(tmp_path / "table"),
        "LATENCY": str(tmp_path / "latency"),
    }
    done = subprocess.run(
        ["sh", "-c", script], check=False, capture_output=True, text=True, timeout=120, env=environment
    )
    log = tmp_path / "log"
    return done.stdout, log.read_text().splitlines() if log.exists() else []


def test_the_script_measures_every_rail_from_host_and_gpu_memory(tmp_path):
    devices = [f"mlx5_{n}" for n in range(8)]
    said, calls = run_script(tmp_path, cluster(*members("leaf1", "leaf1")), "w1", devices)
    figures, latencies, findings = judge_ports(said, PAIR, Asked(8, latency=True))
    assert findings == []
    assert [(one.rail, one.device, one.memory) for one in figures] == [
        (n, f"mlx5_{n}", memory) for n in range(8) for memory in ("host", "gpu")
    ]
    assert [one.rail for one in latencies] == list(range(8))
    assert calls[9:12] == [
        "called ib_write_bw -d mlx5_3 -i 1 -F -p 18525 --report_gbits -D 5 -q 2 w2",
        "called ib_write_bw -d mlx5_3 -i 1 -F -p 18524 --report_gbits -D 5 -q 2 --use_cuda=3 --use_cuda_dmabuf w2",
        "called ib_read_lat -d mlx5_3 -i 1 -F -p 18526 -n 1000 w2",
    ]


def test_the_server_listens_on_the_same_rails(tmp_path):
    names = ",".join(f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 9, 10, 11))
    declared = cluster(*members("leaf1", "leaf1"), nccl_env={"NCCL_IB_HCA": names})
    said, calls = run_script(tmp_path, declared, "w2")
    assert len(calls) == 24
    assert calls[15].startswith("called ib_write_bw -d mlx5_9 -i 1 -F -p 18531 ")
    assert all(line.startswith("w2 # rail") for line in said.splitlines())


@pytest.mark.parametrize("me", PAIR)
def test_both_ends_try_again_where_perftest_lacked_a_clock(tmp_path, me):
    declared = cluster(*members("leaf1", "leaf1"))
    devices = [f"mlx5_{n}" for n in range(8)]
    said, calls = run_script(tmp_path, declared, me, devices, tables=(WITHOUT_CLOCK, NEBIUS))
    assert calls[0] == calls[1] != calls[2]
    assert len(calls) == 25
    if me == "w1":
        figures, _, findings = judge_ports(said, PAIR, Asked(8, latency=True))
        assert (len(figures), findings) == (16, [])


@pytest.mark.parametrize("me", PAIR)
def test_they_try_three_times(tmp_path, me):
    declared = cluster(*members("leaf1", "leaf1"))
    devices = [f"mlx5_{n}" for n in range(8)]
    said, calls = run_script(tmp_path, declared, me, devices, tables=(WITHOUT_CLOCK,))
    assert len(calls) == 3 * 16 + 8
    if me == "w1":
        figures, _, findings = judge_ports(said, PAIR, Asked(8, latency=True))
        assert figures == []
        assert {one.status for one in findings} == {Status.UNKNOWN}
        assert len(findings) == 8


def test_more_devices_than_ports_are_not_guessed_at(tmp_path):
    declared = cluster(*members("leaf1", "leaf1"))
    said, calls = run_script(tmp_path, declared, "w1", [f"mlx5_{n}" for n in range(10)])
    assert calls == []
    [found] = judge_ports(said, PAIR, Asked(8, FLOOR))[2]
    assert "10 active RDMA devices of 400 Gb/s, 8 fabric ports are declared" in found.text


def test_the_script_finds_the_index_of_the_declared_gid(tmp_path):
    own, other = mapped_gid(IPv4Address("10.1.0.1")), "fe80:0000:0000:0000:0000:0000:0000:0001"
    gids = [(other, "IB/RoCE v1"), (own, "IB/RoCE v1"), (other, "RoCE v2"), (own, "RoCE v2")]
    said, calls = run_script(tmp_path, two_leaves(), "w1", ["rxe_rail0", "rxe_rail1"], gids)
    assert calls[0] == "called ib_write_bw -d rxe_rail0 -i 1 -F -x 3 -p 18516 --report_gbits -D 5 -q 2 w2"
    assert "w1 # rail 1 rxe_rail1 no-gid 0000:0000:0000:0000:0000:ffff:0a01:0101" in said
