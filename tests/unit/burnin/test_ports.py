"""Ports by ib_write_bw: published tables, pairs of one leaf, and the script against a real shell."""

from __future__ import annotations

import os
import subprocess

import pytest

from rackwright.burnin.ports import (
    devices_of,
    judge_ports,
    leaf_pairs,
    measure_ports,
    parse_perftest,
    port_step,
)
from rackwright.catalog.read import catalogue
from rackwright.model.settings import Burnin
from rackwright.model.sku import Metric
from rackwright.status import Status
from rackwright.workload.protocol import Output
from tests.factories import make_node

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
    figures, [found] = judge_ports(text, PAIR, 2, FLOOR)
    assert [one.gbps for one in figures] == [385.10, 353.53]
    assert found.status is Status.FAIL
    assert found.text.startswith(
        "ib_write_bw: rail 1 (mlx5_1) of w1 -> w2 reaches 353.53 Gb/s from host memory, under the floor of"
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
    figures, [found] = judge_ports(text, PAIR, 1, FLOOR)
    assert (figures, found.status) == ([], Status.UNKNOWN)
    assert found.text.startswith("ib_write_bw: 0 of 1 rails of w1 -> w2 have a figure: ")
    assert found.text.endswith(says)


def test_pairs_are_of_one_leaf():
    nodes = [make_node(f"w{n}", n, switch=f"leaf{n % 2}") for n in range(1, 8)]
    leaf = {node.name: node.switch for node in nodes}
    rounds = leaf_pairs(nodes)
    for pairs in rounds:
        names = [name for pair in pairs for name in pair]
        assert len(names) == len(set(names))
        assert all(leaf[one] == leaf[two] for one, two in pairs)
    assert {name for pairs in rounds for pair in pairs for name in pair} == set(leaf)
    assert leaf_pairs([make_node("w1", 1), make_node("w2", 2)]) == [[("w1", "w2")]], "no switch declared"


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


def test_out_of_scope_by_name():
    without = measure_ports(Manager(), Burnin(), tuple(make_node(f"w{n}", n) for n in (1, 2)), print)[1]
    assert [one.text for one in without] == ["ib_write_bw: SKU test-node declares no fabric port"]
    manager = Manager()
    found = measure_ports(manager, Burnin(), members("leaf1", "leaf2"), print)[1]
    assert [one.text for one in found] == [
        "ib_write_bw: w1 has no peer on its leaf",
        "ib_write_bw: w2 has no peer on its leaf",
    ]
    assert all(one.status is Status.OUT_OF_SCOPE for one in (*without, *found))
    assert manager.steps == []


def test_all_rails_of_a_pair_pass():
    text = labelled("w1", "".join(rail(n, NEBIUS.replace("353.53", "392.1"), "gpu") for n in range(8)))
    figures, findings = measure_ports(Manager(text), Burnin(), members("leaf1", "leaf1"), lambda said: None)
    assert (len(figures), findings) == (8, ())


def test_devices_are_the_ones_that_nccl_uses():
    assert devices_of("mlx5_0,mlx5_3:1,mlx5_4") == ("mlx5_0", "mlx5_3", "mlx5_4")
    assert devices_of("=mlx5_0,mlx5_3") == ("mlx5_0", "mlx5_3")
    assert devices_of("mlx5") == devices_of("^mlx5_1,mlx5_2") == devices_of("") == ()


STUB = """#!/bin/sh
case "$*" in *--help*) echo "  --use_cuda_dmabuf"; exit 0;; esac
echo "called $*" >> "$LOG"
case "$*" in *w2) cat "$TABLE";; esac
"""


def run_script(tmp_path, settings, hostname, devices=()):
    """The script of a pair as node `hostname`; hostname and ib_write_bw are stubs, sh is this machine's."""
    (tmp_path / "ib_write_bw").write_text(STUB)
    (tmp_path / "hostname").write_text(f"#!/bin/sh\necho {hostname}\n")
    for program in ("ib_write_bw", "hostname"):
        (tmp_path / program).chmod(0o755)
    (tmp_path / "table").write_text(NEBIUS)
    step = port_step(settings, members("leaf1", "leaf1")[0], PAIR, 8, 400)
    script = step.command[-1].replace("/sys/class/infiniband", str(tmp_path / "sys"))
    for device in devices:
        port = tmp_path / "sys" / device / "ports" / "1"
        port.mkdir(parents=True)
        (port / "state").write_text("4: ACTIVE\n")
        (port / "rate").write_text("400 Gb/sec (4X NDR)\n")
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LOG": str(tmp_path / "log"),
        "TABLE": str(tmp_path / "table"),
    }
    done = subprocess.run(
        ["sh", "-c", script], check=False, capture_output=True, text=True, timeout=120, env=environment
    )
    log = tmp_path / "log"
    return done.stdout, log.read_text().splitlines() if log.exists() else []


@pytest.mark.slow
def test_the_script_measures_every_rail_from_the_memory_of_its_gpu(tmp_path):
    devices = [f"mlx5_{n}" for n in range(8)]
    said, calls = run_script(tmp_path, Burnin(), "w1", devices)
    figures, findings = judge_ports(said, PAIR, 8, None)
    assert findings == []
    assert [(one.rail, one.device, one.memory) for one in figures] == [
        (n, f"mlx5_{n}", "gpu") for n in range(8)
    ]
    assert calls[3] == (
        "called -d mlx5_3 -p 18518 -F --report_gbits -D 5 -q 2 --use_cuda=3 --use_cuda_dmabuf w2"
    )


def test_the_server_listens_on_the_same_rails(tmp_path):
    names = ",".join(f"mlx5_{n}" for n in (0, 3, 4, 5, 6, 9, 10, 11))
    said, calls = run_script(tmp_path, Burnin(nccl_env={"NCCL_IB_HCA": names}), "w2")
    assert len(calls) == 8
    assert "called -d mlx5_9 -p 18520 -F" in calls[5]
    assert all(line.startswith("w2 # rail") for line in said.splitlines())


def test_more_devices_than_ports_are_not_guessed_at(tmp_path):
    said, calls = run_script(tmp_path, Burnin(), "w1", [f"mlx5_{n}" for n in range(10)])
    assert calls == []
    [found] = judge_ports(said, PAIR, 8, FLOOR)[1]
    assert "10 active RDMA devices of 400 Gb/s, 8 fabric ports are declared" in found.text
