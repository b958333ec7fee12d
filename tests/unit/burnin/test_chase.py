"""The search on a declared fabric: jobs, counters and cables, against a head that answers like Slurm."""

import re

import pytest

from rackwright.burnin import burnin
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, ExitCode
from rackwright.model.types import LinkKind
from rackwright.status import Status
from tests.unit.burnin.fabrics import address_of, two_leaves
from tests.unit.burnin.head import Head
from tests.unit.burnin.test_ports import NEBIUS, labelled, rail

MESSAGE = 64 * 2**20
SLOW_GBS = 0.5


@pytest.fixture(autouse=True)
def _state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("rackwright.burnin.readiness.PATIENCE_SECONDS", 0)


def counters(number, words, errors=0, rails=2, packets=None, tcp=0):
    """What the script prints of a node with two rails; `words` of 4 bytes were sent by each."""
    lines = []
    for one in range(rails):
        gid = f"0000:0000:0000:0000:0000:ffff:0a01:{one:02x}{number:02x}"
        counted = [f"count sent_pkts {packets}"] if packets is not None else [f"count port_xmit_data {words}"]
        lines += [
            f"device rxe_rail{one}", "pcie current_link_width 8", "pcie max_link_width 16", "port 1",
            "link state 4: ACTIVE", "link rate 400 Gb/sec (4X NDR)", *counted, f"count port_rcv_data {words}",
            f"count symbol_error {errors if one == 1 else 0}", f"gid 3 {gid} RoCE v2",
        ]  # fmt: skip
        lines += [f"interface eth{one + 1}", "link mtu 1500", f"count tx_bytes {tcp}"]
    return "\n".join([*lines, "end"]) + "\n"


class FabricHead(Head):
    """Every reading of the counters is MESSAGE bytes further, by RDMA."""

    unreadable = ()
    by_tcp = ()
    bad_rail = ("w3", 1)

    def __init__(self, **options):
        super().__init__(**{f"w{n}": "idle" for n in range(1, 13)} | options)
        self.read = {}

    def run(self, node, command, *, stdin=None, timeout):
        if command.startswith("show() {"):
            turn = self.read[node] = self.read.get(node, 0) + 1
            if node in self.unreadable:
                raise ConnectionFailed(f"Cannot connect to {node}.")
            words = 0 if node in self.by_tcp else turn * MESSAGE
            return CommandResult(
                command, 0, counters(int(node[1:]), words, errors=turn * 50, tcp=turn * 10**9), ""
            )
        return super().run(node, command, stdin=stdin, timeout=timeout)

    def _srun(self, command):
        if "ib_write_bw" not in command:
            return super()._srun(command)
        self.jobs.append(command)
        said = ""
        for client, server in re.findall(r'(w\d+)\) server="(w\d+)"', command):
            figures = ("100.00" if self.bad_rail in ((client, n), (server, n)) else "350.00" for n in (0, 1))
            said += labelled(
                client,
                "".join(rail(n, NEBIUS.replace("353.53", one)) for n, one in enumerate(figures)).replace(
                    "mlx5_", "rxe_rail"
                ),
            )
        return said + "# srun exit status 0\n"


def slow_with(head, names, bad):
    head.pair_busbw = {
        tuple(sorted((one, two))): SLOW_GBS for one in names for two in names if one != two and bad(one, two)
    }
    return head


def against(report):
    return [one for one in report.groups[0].findings if one.status is not Status.OUT_OF_SCOPE]


def test_a_slow_rail_is_named_with_its_cable_and_the_likely_cause():
    names = [f"w{n}" for n in range(1, 9)]
    head = slow_with(FabricHead(busbw=SLOW_GBS), names, lambda one, two: "w3" in (one, two))
    report = burnin(two_leaves(units=2, size=4), shell=head)
    assert report.exit_code is ExitCode.CHECK_FAILED
    [named] = report.groups[0].chased.named
    assert (named.culprit.kind, named.culprit.nodes, named.culprit.rails) == ("rail", ("w3",), (1,))
    [under, found] = report.groups[0].findings
    assert found.status is Status.FAIL
    assert found.text == (
        "culprit: w3 rail 1: 0.5 GB/s with it, 2 without a fault; cable w3 rail 1 to leaf0.1 port 3 (c021); its PCIe link "
        "has 8 of 16 lanes; 50 symbol errors: the cable, its ends or the transceiver; a bit error rate of 2.3e-08 at least"
    )
    assert under.text.startswith("0.5 GB/s at 67108864 B is below the floor")


def test_slow_uplinks_are_named_with_both_ends_of_each_cable():
    names = [f"w{n}" for n in range(1, 13)]

    def crosses(one, two):
        units = {(int(name[1:]) - 1) // 4 for name in (one, two)}
        return len(units) > 1 and 1 in units

    head = slow_with(FabricHead(busbw=SLOW_GBS), names, crosses)
    head.bad_rail = None
    report = burnin(two_leaves(units=3, size=4), shell=head)
    [named] = report.groups[0].chased.named
    assert (named.culprit.kind, named.culprit.units, named.culprit.nodes) == (
        "uplinks",
        (1,),
        ("w5", "w6", "w7", "w8"),
    )
    assert named.cables == (
        "leaf1.0 port 31 to spine0 port 3", "leaf1.0 port 32 to spine1 port 3",
        "leaf1.1 port 31 to spine0 port 4", "leaf1.1 port 32 to spine1 port 4",
    )  # fmt: skip
    assert "between the spines and the leaves of w[5-8]: 0.5 GB/s" in report.groups[0].findings[1].text


def test_mpi_goes_over_the_declared_devices_and_the_counters_prove_it():
    head = FabricHead(busbw=5.0)
    report = burnin(two_leaves(units=1), shell=head)
    assert report.exit_code is ExitCode.CLEAN
    assert against(report) == []
    job = head.jobs[-1]
    for setting in (
        "OMPI_MCA_pml=ucx", "OMPI_MCA_pml_ucx_devices=any", "OMPI_MCA_pml_ucx_tls=any",
        "UCX_TLS=rc_verbs,tcp,sm,self", "UCX_NET_DEVICES=rxe_rail0:1,rxe_rail1:1,eth1,eth2",
    ):  # fmt: skip
        assert f"{setting} " in job
    assert head.read == {"w1": 2, "w2": 2}


def test_rdma_declared_and_tcp_used_is_a_failure_by_name():
    head = FabricHead(busbw=5.0)
    head.by_tcp = ("w2",)
    report = burnin(two_leaves(units=1), shell=head)
    assert report.exit_code is ExitCode.CHECK_FAILED
    [found] = against(report)
    assert found.text == (
        "transport: roce is declared, but RDMA was not used; one message is 67108864 B: w2 sent 0 B over rxe_rail0, rxe_rail1 "
        "(eth1 sent 1000000000 B)"
    )


def test_counters_that_cannot_be_read_are_unknown():
    head = FabricHead(busbw=5.0)
    head.unreadable = ("w1",)
    report = burnin(two_leaves(units=1), shell=head)
    assert report.exit_code is ExitCode.UNKNOWN
    [found] = against(report)
    assert found.text == "transport: the RDMA counters of w1 cannot be read: Cannot connect to w1."


def test_a_declared_device_that_is_not_there_is_unknown():
    class Without(FabricHead):
        def run(self, node, command, **options):
            result = super().run(node, command, **options)
            return CommandResult(command, 0, "end\n", "") if command.startswith("show() {") else result

    [found] = against(burnin(two_leaves(units=1), shell=Without(busbw=5.0)))
    assert found.status is Status.UNKNOWN
    assert found.text.endswith("w[1-2] cannot be read: the node has no device rxe_rail0 with a port 1")


def test_devices_that_ucx_does_not_drive_are_left_to_mpi():
    head = FabricHead(busbw=5.0)
    burnin(two_leaves(units=1, kind=LinkKind.IWARP), shell=head)
    assert "UCX_" not in head.jobs[-1]


def test_an_acceptance_measures_each_unit_by_itself():
    head = FabricHead(busbw=5.0)
    group = burnin(two_leaves(units=3, size=2), shell=head, profile="acceptance").groups[0]
    assert [(one.scope, one.nodes, one.busbw_gbs) for one in group.scopes] == [
        ("unit", (f"w{n}", f"w{n + 1}"), 5.0) for n in (1, 3, 5)
    ]
    assert {one.way for one in group.ports} == {"leaf", "spine"}
    assert address_of(1, 0) == "10.1.0.1"
