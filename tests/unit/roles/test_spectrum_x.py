"""The spectrum_x role."""

from __future__ import annotations

import os
import subprocess

import pytest

from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.spectrum_x import paths, texts
from rackwright.roles.spectrum_x.options import Card, SpectrumXOptions
from rackwright.roles.spectrum_x.verify import CHECKS, PACKAGE
from tests.unit.roles.fake_facts import file, installed, unit
from tests.unit.roles.fake_host import FakeHost, claimed, errors_in, judged, planned
from tests.unit.roles.rail_sites import Devices, fabric_site
from tests.unit.roles.sites import worker

BOOT, REGISTERS, FIRMWARE, CONTROL = (check.name for check in CHECKS)
FULL = SpectrumXOptions(
    registers={"roce_tx_window_en": 0},
    firmware={"ROCE_CC_PRIO_MASK_P1": "255"},
    congestion_control="3.1.0105-1",
)
CARDS = (Card("mlx5_rail0", "0000:18:00.0"), Card("mlx5_rail1", "0000:19:00.0"))
# as NVIDIA's "Adaptive Retransmission: Parameters Control" shows it
REGISTER = """\
Sending access register...

Field Name                                 | Data
============================================================
roce_adp_retrans_field_select              | 0x00000001
adaptive_routing_forced_en_field_select    | 0x00000001
roce_tx_window_en                          | 0x00000000
adaptive_routing_forced_en                 | 0x00000001
"""
CONFIG = "Configurations:                              Next Boot\n        ROCE_CC_PRIO_MASK_P1                        255\n"


def spectrum(given=FULL, *, kind=LinkKind.SPECTRUM_X, **changes):
    return fabric_site({"spectrum_x": given, "devices": Devices()}, kind=kind, **changes)


CLUSTER = spectrum()


def test_values_of_the_site():
    assert FULL.fields == {"adaptive_routing_forced_en": 1, "roce_tx_window_en": 0}
    assert SpectrumXOptions(adaptive_routing=False).fields == {"adaptive_routing_forced_en": 0}
    assert FULL.cards(CLUSTER, worker(CLUSTER)) == CARDS
    assert FULL.unit_files(worker(CLUSTER)) == (paths.UNIT_PATH,)


def test_refused():
    assert errors_in(SpectrumXOptions, {"registers": {"adaptive_routing_forced_en": 1}}) == [
        "adaptive_routing_forced_en is set by `adaptive_routing`."
    ]
    assert errors_in(SpectrumXOptions, {"registers": {"a b": 1}}) == [
        "a b: 1 is not a field of a register with a value."
    ]
    assert errors_in(SpectrumXOptions, {"firmware": {"X": "a;b"}}) == [
        "X: 'a;b' is not a parameter of mlxconfig with a value."
    ]
    assert errors_in(SpectrumXOptions, {"congestion_control": "a b"}) == [
        "'a b' is not a release of a package."
    ]
    wrong = SpectrumXOptions(networks=("fabric", "nowhere"))
    assert [problem[:2] for problem in wrong.problems(spectrum(wrong, kind=LinkKind.ROCE))] == [
        ("networks[0]", "fabric has `kind: roce`, which is not supported here."),
        ("networks[1]", "Network nowhere does not exist."),
    ]
    soft = fabric_site({"spectrum_x": FULL, "devices": Devices(soft=True)}, kind=LinkKind.SPECTRUM_X)
    assert [problem[1] for problem in FULL.problems(soft)] == [
        "gpu1 has no RDMA device at a PCI address on fabric."
    ]
    assert list(FULL.problems(CLUSTER)) == list(FULL.warnings(CLUSTER)) == []


def test_a_fabric_that_is_not_rail_optimised_is_warned_of():
    cables = tuple(Cable(NodePort("gpu1", rail), SwitchPort("leaf0", rail + 1)) for rail in (0, 1))
    mixed = Fabric("fabric", LinkKind.SPECTRUM_X, 2, ("leaf0",), (), cables)
    cluster = CLUSTER.model_copy(update={"fabrics": {"fabric": mixed}})
    assert [warning[1] for warning in FULL.warnings(cluster)] == [
        "fabric is not rail-optimised: leaf0 has cables of several rails."
    ]


def test_the_plan():
    assert [op.name for op in planned(CLUSTER, worker(CLUSTER)).operations if op.role == "spectrum_x"] == [
        f"Write {paths.PROGRAM}",
        f"Write {paths.UNIT_PATH}",
        "Set the NIC registers at boot",
        "Set the NIC registers",
    ]
    vm = spectrum(platform=Platform.VM)
    assert len([op for op in planned(vm, worker(vm)).operations if op.role == "spectrum_x"]) == 2
    assert (
        "ExecStart=/usr/local/sbin/rackwright-spectrum-x apply\n" in texts.files(FULL, CARDS)[paths.UNIT_PATH]
    )


TOOL = """\
#!/bin/sh
echo "$*" >>{state}/log
case "$*" in
*--get*) cat {state}/register;;
*--set*) sed -i 's/^\\(adaptive_routing_forced_en  *\\)| 0x00000000/\\1| 0x00000001/' {state}/register;;
esac
"""


def test_the_program_sets_what_differs_and_nothing_else(tmp_path):
    """With an mlxreg that keeps the register in a file."""
    (tmp_path / "register").write_text(
        REGISTER.replace("forced_en                 | 0x00000001", "forced_en                 | 0x00000000")
    )
    (tmp_path / "mlxreg").write_text(TOOL.format(state=tmp_path))
    (tmp_path / "mlxreg").chmod(0o755)
    program = tmp_path / "program"
    program.write_text(texts.files(FULL, CARDS[:1])[paths.PROGRAM])
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(word):
        return subprocess.run(
            ["sh", program, word], env=environment, capture_output=True, text=True, check=False, timeout=20
        )

    log = tmp_path / "log"
    assert run("wrong").stdout.strip() == "0000:18:00.0: adaptive_routing_forced_en is 0, not 1"
    assert "--set" not in log.read_text()
    assert run("apply").returncode == 0
    assert [line for line in log.read_text().splitlines() if "--set" in line] == [
        "-d 0000:18:00.0 --reg_name ROCE_ACCL --set adaptive_routing_forced_en=1 --yes"
    ]
    log.unlink()
    assert (run("apply").returncode, run("wrong").stdout) == (0, "as declared\n")
    assert "--set" not in log.read_text()
    (tmp_path / "register").write_text("")
    assert (run("wrong").returncode, run("apply").returncode) == (1, 1)
    assert "there is no adaptive_routing_forced_en" in run("wrong").stdout
    (tmp_path / "mlxreg").write_text("#!/bin/sh\nexit 1\n")
    assert "adaptive_routing_forced_en is unreadable" in run("wrong").stdout


def get(card):
    return f"timeout 60 mlxreg -d {card.pci} --reg_name ROCE_ACCL --get"


def config(card):
    return f"timeout 60 mlxconfig -d {card.pci} q ROCE_CC_PRIO_MASK_P1"


FAMILY = os_release("debian-13").family
HAVE = installed(FAMILY, (PACKAGE,))
HEALTHY = {
    **file(paths.PROGRAM, texts.files(FULL, CARDS)[paths.PROGRAM], "755"),
    **file(paths.UNIT_PATH, texts.files(FULL, CARDS)[paths.UNIT_PATH]),
    **unit(paths.UNIT),
    **{get(card): REGISTER for card in CARDS},
    **{config(card): CONFIG for card in CARDS},
    **{line: answer.replace(" 1 ii", " 3.1.0105-1 ii") for line, answer in HAVE.items()},
}
CASES = [
    (BOOT, {}, "PASS", None),
    (BOOT, unit(paths.UNIT, "inactive"), "FAIL", f"{paths.UNIT} is inactive"),
    (REGISTERS, {}, "PASS", "adaptive_routing_forced_en 1, roce_tx_window_en 0"),
    (
        REGISTERS,
        {get(CARDS[1]): REGISTER.replace("en                 | 0x00000001", "en                 | 0x00000000")},
        "FAIL",
        "mlx5_rail1: adaptive_routing_forced_en is 0, not 1",
    ),
    (
        REGISTERS,
        {get(CARDS[0]): "roce_tx_window_en | 0x0\n"},
        "UNKNOWN",
        "mlx5_rail0 has no adaptive_routing_forced_en",
    ),
    (REGISTERS, {get(CARDS[0]): "-E- cannot open\n"}, "UNKNOWN", None),
    (FIRMWARE, {}, "PASS", "ROCE_CC_PRIO_MASK_P1 255"),
    (FIRMWARE, {config(CARDS[0]): CONFIG.replace("255", "0")}, "FAIL", "mlx5_rail0: ROCE_CC_PRIO_MASK_P1 is 0, not 255"),
    (FIRMWARE, {config(CARDS[0]): "\n"}, "UNKNOWN", "mlx5_rail0: mlxconfig prints no ROCE_CC_PRIO_MASK_P1"),
    (CONTROL, {}, "PASS", "doca-spcx-cc 3.1.0105-1"),
    (CONTROL, HAVE, "FAIL", "doca-spcx-cc is 1, not 3.1.0105-1"),
    (CONTROL, installed(FAMILY, (PACKAGE,), missing=(PACKAGE,)), "FAIL", "doca-spcx-cc is not installed, not 3.1.0105-1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("spectrum_x", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("answer", [None, "", "rubbish\n", (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    found = judged("spectrum_x", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert found.status in ("FAIL", "UNKNOWN"), found.evidence


def test_scope():
    plain = spectrum(SpectrumXOptions(tool="mstreg"))
    assert claimed("spectrum_x", CHECKS, worker(plain)) == (BOOT, REGISTERS)
    assert "mstreg" in texts.files(SpectrumXOptions(tool="mstreg"), CARDS)[paths.PROGRAM]
    vm = spectrum(platform=Platform.VM)
    assert judged("spectrum_x", CHECKS, REGISTERS, vm, worker(vm), FakeHost({})).status == "OUT OF SCOPE"
