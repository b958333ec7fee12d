"""A racked machine without qemu: its settings, its faults, and what a spec of one has to hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import (
    bmc_faults,
    fault_record,
    faults,
    links,
    names,
    node,
    power,
    qemu,
    racked,
    state,
    status,
    vm,
)
from rackwright.lab.bmc import certificates, process, service, settings
from rackwright.lab.bmc.settings import LOG_MAX, Medium, Override
from rackwright.lab.spec import NodeSpec, RackSpec
from tests.unit.lab.bmc.machines import bmc_spec
from tests.unit.lab.bmc.machines import racked as machine
from tests.unit.lab.specs import node as container
from tests.unit.lab.specs import rack


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RackSpec:
    """A rack of two racked machines and a container, as far as files go; nothing runs."""
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path / "lab"))
    monkeypatch.setattr(node, "running", lambda *_: False)
    (tmp_path / "firmware").write_text("plain")
    (tmp_path / "secure").write_text("with keys")
    monkeypatch.setattr(qemu, "FIRMWARE_VARIABLES", tmp_path / "firmware")
    monkeypatch.setattr(qemu, "SECURE_VARIABLES", tmp_path / "secure")
    monkeypatch.setattr(vm, "blank", lambda target, size: target.write_text(str(size)))
    nodes = (machine(1, tmp_path / ".lab"), machine(2, tmp_path / ".lab"), container(3))
    one = rack(tmp_path, nodes=nodes, bmc_bridge="10.1.0.1/24")
    for target in one.nodes:
        names.node_state("unit", target.name).mkdir(parents=True)
    for target in one.racked:
        racked.prepare(one, target, Path(), "")
    return one


def applied(spec: RackSpec) -> qemu.Start:
    return racked._apply_settings(spec, spec.nodes[0])[0]


def variables(spec: RackSpec) -> str:
    return racked.disks("unit", spec.nodes[0]).variables.read_text()


def test_disks_are_blank_and_private(spec: RackSpec):
    folder = vm.disk_folder("unit", "node1")
    assert folder.stat().st_mode & 0o777 == 0o700
    sizes = {path.name: path.read_text() for path in folder.glob("*.qcow2")}
    assert sizes == {"root.qcow2": str(16 << 30), "data0.qcow2": str(4 * 10**9)}
    assert racked.disks("unit", spec.nodes[0]).seed is None


def test_an_override_for_one_boot_is_used_up_by_a_start(spec: RackSpec):
    with settings.changing("unit", "node1") as kept:
        kept.override = Override("Cd", "Once")
        kept.bios_wanted = {"ProcTurbo": "Disabled"}
        kept.medium = Medium("http://10.1.0.1/a.iso", write_protected=True, size=1)
    start = applied(spec)
    assert (start.order, start.medium) == (("cd", "disk"), racked.medium("unit", "node1"))
    after = settings.read("unit", "node1")
    assert (after.override, after.bios["ProcTurbo"], after.bios_wanted) == (Override(), "Disabled", {})
    assert applied(spec).order == ("disk",)


def test_secure_boot_changes_the_firmwares_variables_with_the_start_alone(spec: RackSpec):
    assert variables(spec) == "plain"
    racked.disks("unit", spec.nodes[0]).variables.write_text("plain, and a boot entry")
    with settings.changing("unit", "node1") as kept:
        kept.secure_boot_wanted = True
    assert variables(spec) == "plain, and a boot entry"
    assert applied(spec).secure_boot
    assert variables(spec) == "with keys"
    racked.disks("unit", spec.nodes[0]).variables.write_text("with keys, and a boot entry")
    assert applied(spec).secure_boot
    assert variables(spec) == "with keys, and a boot entry"


def test_a_change_that_fails_halfway_changes_nothing(spec: RackSpec):
    before = settings.read("unit", "node1")

    def fail() -> None:
        with settings.changing("unit", "node1") as kept:
            kept.note("never written", "Test")
            raise ValueError("halfway")

    with pytest.raises(ValueError, match="halfway"):
        fail()
    assert settings.read("unit", "node1") == before
    names.node_state("unit", "node1").joinpath("bmc.json").write_text("{}")
    with pytest.raises(LabError, match="is damaged"):
        settings.read("unit", "node1")


def test_a_machine_that_was_never_on_can_be_switched_off(spec: RackSpec):
    power.act(spec, spec.nodes[0], "off")
    power.act(spec, spec.nodes[0], "soft")


@pytest.mark.parametrize(
    ("number", "kind", "args", "why"),
    [
        (3, "bmc:psu", (), "node node3 is a container"),
        (1, "bmc:psu", ("2",), "takes 0 arguments"),
        (1, "bmc:error", (), "takes 1 arguments"),
        (1, "bmc:error", ("200",), "bmc:error 200: not one of 409, 429, 500, 502, 503"),
        (1, "bmc:slow", ("-1",), "not between 0 and 600 seconds"),
        (1, "bmc:slow", ("nan",), "not between 0 and 600 seconds"),
        (1, "bmc:swap", ("node1",), "not another node with a BMC"),
        (1, "bmc:swap", ("node3",), "not another node with a BMC"),
        (1, "bmc:swap", ("node9",), "rack unit has no node 'node9'"),
        (1, "kill", (), "node node1 is not running"),
    ],
)
def test_faults_that_are_refused_are_not_recorded(
    spec: RackSpec, number: int, kind: str, args: tuple[str, ...], why: str
):
    with pytest.raises(LabError, match=why):
        faults.inject(spec, spec.nodes[number - 1], kind, args)
    assert all(fault_record.recorded("unit", one.name) == {} for one in spec.nodes)


def test_a_bmc_breaks_and_heals_while_its_machine_is_off(spec: RackSpec):
    one, two, _ = spec.nodes
    faults.inject(spec, one, "bmc:swap", ("node2",))
    faults.inject(spec, one, "bmc:error", ("503",))
    faults.inject(spec, one, "bmc:error", ("409",))
    faults.inject(spec, one, "bmc:sel-full", ())
    assert fault_record.recorded("unit", "node1").keys() == {"bmc:swap", "bmc:error", "bmc:sel-full"}
    assert fault_record.recorded("unit", "node1")["bmc:error"] == ["409"]
    assert fault_record.recorded("unit", "node2") == {"bmc:swap": ["node1"]}
    assert len(settings.read("unit", "node1").log) == LOG_MAX
    faults.booted(spec, one)  # a new start of the machine mends nothing of its BMC
    assert len(fault_record.recorded("unit", "node1")) == 3
    faults.heal(spec, one)
    assert fault_record.recorded("unit", "node1") == fault_record.recorded("unit", "node2") == {}
    assert settings.read("unit", "node1").log == []
    assert two.bmc is not None


def test_a_third_bmc_in_a_swap_ends_the_first(spec: RackSpec, tmp_path: Path):
    more = rack(tmp_path, nodes=(*spec.racked, machine(4, tmp_path / ".lab")), bmc_bridge="10.1.0.1/24")
    names.node_state("unit", "node4").mkdir(parents=True)
    bmc_faults.inject(more, more.nodes[0], "bmc:swap", ("node2",))
    bmc_faults.inject(more, more.nodes[0], "bmc:swap", ("node4",))
    found = {one.name: fault_record.recorded("unit", one.name) for one in more.nodes}
    assert found == {"node1": {"bmc:swap": ["node4"]}, "node2": {}, "node4": {"bmc:swap": ["node1"]}}


def test_certificates_are_made_once_and_a_foreign_authority_is_not_overwritten(
    spec: RackSpec, tmp_path: Path
):
    published = tmp_path / ".lab" / "bmc_ca.pem"
    certificates.ensure(spec)
    first = (published.read_text(), certificates.chain("unit", "node1").read_text())
    certificates.ensure(spec)
    assert (published.read_text(), certificates.chain("unit", "node1").read_text()) == first
    assert certificates.chain("unit", "node1").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in published.read_text()
    _, stranger = certificates.new_authority("the site's CA")
    published.write_text(certificates.pem(stranger))
    with pytest.raises(LabError, match="not the lab's: it is not replaced"):
        certificates.ensure(spec)


def test_the_password_is_made_once(tmp_path: Path):
    path = tmp_path / ".lab" / "bmc_password"
    service._ensure_password(path)
    first = path.read_text()
    service._ensure_password(path)
    assert (path.read_text(), len(first.strip()) >= 16) == (first, True)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_spec_survives_json(spec: RackSpec):
    text = json.dumps(spec.to_json())
    assert RackSpec.from_json(json.loads(text)) == spec
    state.save_spec(spec)
    assert state.saved_spec("unit") == spec


@pytest.mark.parametrize(
    ("nodes", "bridge", "why"),
    [
        ((machine(1),), None, "it has BMCs, but no address in their network"),
        ((machine(1),), "10.1.0.11/24", "10.1.0.11 is used twice"),
        ((machine(1),), "10.2.0.1/24", "the BMC of node1 is not in 10.2.0.0/24"),
        ((machine(1), machine(2, bmc=bmc_spec(1))), "10.1.0.1/24", "10.1.0.11 is used twice"),
    ],
)
def test_bad_racks(nodes: tuple[NodeSpec, ...], bridge: str | None, why: str):
    with pytest.raises(LabError, match=why):
        rack(Path("/site"), nodes=nodes, bmc_bridge=bridge)


def test_a_container_has_no_bmc_and_any_system_can_be_installed_on_a_machine():
    with pytest.raises(LabError, match="node node1: a container has no BMC"):
        machine(1, vm=None)
    assert machine(1, image="rocky-9").image == "rocky-9"


def test_the_log_notes_what_happens_to_a_machine_and_its_parts_once(
    spec: RackSpec, monkeypatch: pytest.MonkeyPatch
):
    one = spec.nodes[0]

    def look(*, running: bool) -> list[str]:
        monkeypatch.setattr(node, "running", lambda *_: running)
        process._note_changes(spec, one)
        process._note_changes(spec, one)
        return [entry.message for entry in settings.read("unit", "node1").log]

    assert look(running=False) == []
    assert look(running=True) == ["System power on"]
    faults.inject(spec, one, "bmc:fan", ())
    assert look(running=False)[1:] == ["System power off", "Fan 1 failed"]
    faults.heal(spec, one)
    assert look(running=False)[3:] == ["Fan 1 is good again"]


def test_a_racked_machine_is_on_or_off_and_its_bmc_served_or_not(
    spec: RackSpec, monkeypatch: pytest.MonkeyPatch
):
    served = True
    monkeypatch.setattr(links, "exists", lambda _: True)
    monkeypatch.setattr(service, "running", lambda _: served)
    racked_only = rack(spec.key.parent, nodes=spec.racked, bmc_bridge=spec.bmc_bridge, apt_proxy=None)
    found = status.read("unit", racked_only)
    assert [(one.kind, one.state, one.bmc) for one in found.nodes] == [
        ("racked", "off", "https://10.1.0.11:443"),
        ("racked", "off", "https://10.1.0.12:443"),
    ]
    assert found.up
    served = False
    found = status.read("unit", racked_only)
    assert ([one.bmc for one in found.nodes], found.up) == (["stopped", "stopped"], False)
