"""The irdma role."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from rackwright.claims.check import Undetermined
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import DeclaresHcas, Hca
from rackwright.model.options import RoleOptions
from rackwright.model.types import LinkKind, Platform
from rackwright.roles.irdma import paths, texts
from rackwright.roles.irdma.options import IrdmaOptions
from rackwright.roles.irdma.verify import CHECKS
from tests.unit.roles.fake_facts import file, unit
from tests.unit.roles.fake_host import FakeHost, commands, judged, planned
from tests.unit.roles.rail_sites import fabric_site
from tests.unit.roles.sites import worker

BOOT, PROTOCOL, DEVICES = (check.name for check in CHECKS)


class Intel(RoleOptions, DeclaresHcas):
    """Stands for the role that names RDMA devices; also one that is not Intel's."""

    prefix: str = "irdma_rail"

    def hcas(self, cluster: Cluster, node: Node) -> tuple[Hca, ...]:
        own = [Hca(f"{self.prefix}{rail}", "fabric", rail, f"0000:{18 + rail}:00.0") for rail in (0, 1)]
        return (*own, Hca("mlx5_rail0", "fabric", 0, "0000:40:00.0"), Hca("siw_rail0", "fabric", 0))


def intel_site(kind=LinkKind.IWARP, given=None, **changes):
    return fabric_site({"irdma": given or IrdmaOptions(), "devices": Intel()}, kind=kind, **changes)


CLUSTER = intel_site()
PORTS = IrdmaOptions().ports(CLUSTER, worker(CLUSTER))
READ = f"sh -c {shlex.quote(texts.read(PORTS))}"


def test_the_network_decides_the_protocol():
    assert [(port.hca.name, port.protocol, port.other) for port in PORTS] == [
        ("irdma_rail0", "iwarp", "roce"),
        ("irdma_rail1", "iwarp", "roce"),
    ]
    roce = intel_site(LinkKind.ROCE)
    assert {port.protocol for port in IrdmaOptions().ports(roce, worker(roce))} == {"roce"}
    assert texts.wanted(PORTS) == "0000:18:00.0 true false\n0000:19:00.0 true false"


def test_refused():
    given = IrdmaOptions(networks=("fabric", "nowhere"))
    infiniband = intel_site(LinkKind.INFINIBAND, given)
    assert [problem[:2] for problem in given.problems(infiniband)] == [
        ("networks[0]", "fabric has `kind: infiniband`, which is not supported here."),
        ("networks[1]", "Network nowhere does not exist."),
    ]
    without = fabric_site({"irdma": IrdmaOptions(), "devices": Intel(prefix="mlx5_")}, kind=LinkKind.IWARP)
    assert [problem[:2] for problem in IrdmaOptions().problems(without)] == [
        ("networks", "gpu1 has no RDMA device named `irdma_...` at a PCI address on fabric.")
    ]
    assert list(IrdmaOptions().problems(CLUSTER)) == []


def test_the_plan():
    cluster = intel_site()
    plan = planned(cluster, worker(cluster))
    assert [op.name for op in plan.operations if op.role == "irdma"] == [
        f"Write {paths.PROGRAM}",
        f"Write {paths.UNIT_PATH}",
        "Set the port protocol at boot",
        "Set the port protocol",
    ]
    assert commands(plan, "Set the port protocol") == (paths.PROGRAM,)
    vm = intel_site(platform=Platform.VM)
    assert len([op for op in planned(vm, worker(vm)).operations if op.role == "irdma"]) == 2
    assert IrdmaOptions().unit_files(worker(cluster)) == (paths.UNIT_PATH,)


DEVLINK = """\
#!/bin/sh
case "$3" in
show) file={state}/$(echo "$4 $6" | tr / _); v=$(cat "$file" 2>/dev/null) || exit 1
  printf '%s:\\n  name %s type generic\\n    values:\\n      cmode runtime value %s\\n' "$4" "$6" "$v";;
set) case "$6" in enable_iwarp) other=enable_roce;; *) other=enable_iwarp;; esac
  # ice refuses both at once
  [ "$8" = false ] || [ "$(cat {state}/"$(echo "$4 $other" | tr / _)")" = false ] || exit 1
  echo "$8" >{state}/"$(echo "$4 $6" | tr / _)"; echo "$4 $6 $8" >>{state}/log;;
esac
"""


def test_the_program_turns_the_other_protocol_off_first_and_then_has_nothing_to_do(tmp_path):
    """With a devlink that keeps its state in files, as ice has it after a boot: RoCE v2."""
    for port in PORTS:
        (tmp_path / f"pci_{port.pci} enable_iwarp").write_text("false\n")
        (tmp_path / f"pci_{port.pci} enable_roce").write_text("true\n")
    (tmp_path / "devlink").write_text(DEVLINK.format(state=tmp_path))
    (tmp_path / "devlink").chmod(0o755)
    program = tmp_path / "program"
    program.write_text(texts.files(PORTS)[paths.PROGRAM])
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(*words):
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=20)

    assert texts.parse(run("sh", "-c", texts.read(PORTS)).stdout) == dict.fromkeys(
        (port.pci for port in PORTS), "roce"
    )
    assert run("sh", program).returncode == 0
    log = tmp_path / "log"
    assert log.read_text().splitlines()[:2] == [
        "pci/0000:18:00.0 enable_roce false",
        "pci/0000:18:00.0 enable_iwarp true",
    ]
    assert run("sh", "-c", texts.read(PORTS)).stdout.strip() == texts.wanted(PORTS)
    log.unlink()
    assert run("sh", program).returncode == 0
    assert not log.exists()
    (tmp_path / f"pci_{PORTS[0].pci} enable_roce").unlink()  # devlink fails for it, and so does the program
    (tmp_path / "devlink").write_text("#!/bin/sh\nexit 1\n")
    assert run("sh", program).returncode == 1


HEALTHY = {
    **file(paths.PROGRAM, texts.files(PORTS)[paths.PROGRAM], "755"),
    **file(paths.UNIT_PATH, texts.files(PORTS)[paths.UNIT_PATH]),
    **unit(paths.UNIT),
    READ: texts.wanted(PORTS) + "\n",
    **{f"cat /sys/class/infiniband/irdma_rail{rail}/node_type": "4: RNIC\n" for rail in (0, 1)},
}
CASES = [
    (BOOT, {}, "PASS", None),
    (BOOT, unit(paths.UNIT, "failed"), "FAIL", f"{paths.UNIT} is failed"),
    (PROTOCOL, {}, "PASS", "irdma_rail0: iwarp, irdma_rail1: iwarp"),
    (
        PROTOCOL,
        {READ: "0000:18:00.0 false true\n0000:19:00.0 false false\n"},
        "FAIL",
        "irdma_rail0 (0000:18:00.0) uses roce, not iwarp; irdma_rail1 (0000:19:00.0) uses none, not iwarp",
    ),
    (PROTOCOL, {READ: "0000:18:00.0  \n"}, "UNKNOWN", None),
    (PROTOCOL, {READ: "0000:18:00.0 true false\n"}, "UNKNOWN", "devlink does not show 0000:19:00.0"),
    (DEVICES, {}, "PASS", "irdma_rail0: 4: RNIC, irdma_rail1: 4: RNIC"),
    (
        DEVICES,
        {"cat /sys/class/infiniband/irdma_rail1/node_type": "1: CA\n"},
        "FAIL",
        "irdma_rail1 is 1: CA, not 4: RNIC",
    ),
    (DEVICES, {"cat /sys/class/infiniband/irdma_rail0/node_type": "9: new\n"}, "UNKNOWN", None),
]


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("irdma", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("answer", [None, "", "rubbish\n", (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    found = judged("irdma", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert found.status in ("FAIL", "UNKNOWN"), found.evidence


def test_scope():
    vm = intel_site(platform=Platform.VM)
    assert judged("irdma", CHECKS, PROTOCOL, vm, worker(vm), FakeHost({})).status == "OUT OF SCOPE"
    with pytest.raises(Undetermined):
        texts.parse("")
