"""One virtual machine: its disks, what is asked of it, and how that fails."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from rackwright.command import CommandResult
from rackwright.errors import LabError
from rackwright.lab import cgroup, container, names, network, power, process, qemu, state, vm
from rackwright.lab import node as nodes
from rackwright.lab.qemu_socket import NotAnswering, StillRunning
from rackwright.lab.rack import Rack
from rackwright.lab.spec import NodeSpec, VmSpec
from tests.unit.lab.socket_server import Agent, Start
from tests.unit.lab.specs import node, rack

MACHINE = node(1, vm=VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1, data_disks_gb=(4, 8)))


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the state of a machine that runs."""
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    monkeypatch.setattr(cgroup, "populated", lambda *_: True)
    folder = names.node_state("unit", "node1")
    folder.mkdir(parents=True)
    return folder


def test_disks_are_made_whole_beside_the_place_they_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path / "lab"))
    firmware = tmp_path / "VARS.fd"
    firmware.write_bytes(b"variables")
    monkeypatch.setattr(qemu, "FIRMWARE_VARIABLES", firmware)
    made: list[list[str]] = []

    def run(argv: list[str], *, timeout: float) -> None:
        made.append(argv)
        Path(argv[-1] if argv[-1].startswith("/") else argv[-2]).touch()

    monkeypatch.setattr(vm, "run", run)
    image = tmp_path / "image"
    (image / "etc").mkdir(parents=True)
    for name in ("passwd", "group", "shadow", "gshadow"):
        (image / "etc" / name).write_text("")
    identity = vm.prepare(rack(tmp_path, nodes=(MACHINE,)), MACHINE, image, "ssh-ed25519 AAAA")
    folder = vm.disk_folder("unit", "node1")
    assert sorted(path.name for path in folder.iterdir()) == [
        "data0.qcow2",
        "data1.qcow2",
        "root.qcow2",
        "seed.raw",
        "variables.fd",
    ]
    assert [argv[:-1] for argv in made[:1]] == [
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", f"{image}/disk.qcow2"]
    ]
    assert [argv[-1] for argv in made[1:]] == ["4000000000", "8000000000"]  # GB as drives are sold
    assert (folder / "seed.raw").stat().st_size % (1 << 20) == 0
    with tarfile.open(folder / "seed.raw") as tar:
        file = tar.extractfile("etc/machine-id")
        assert file is not None
        assert file.read().decode().strip() == identity.machine_id
    assert oct(folder.parent.stat().st_mode & 0o777) == "0o700"  # host keys are in there
    assert [path.name for path in folder.parent.iterdir()] == ["node1.vm"]
    assert vm.disks("unit", MACHINE) == qemu.Disks(
        folder / "root.qcow2",
        folder / "seed.raw",
        folder / "variables.fd",
        (folder / "data0.qcow2", folder / "data1.qcow2"),
    )


def test_a_program_on_a_machine_gets_a_clean_environment(running: Path, serving: Start):
    guest = Agent({"exited": True, "exitcode": 0, "out-data": "b2sK"})
    serving(guest, running / qemu.AGENT)
    assert vm.run_inside("unit", MACHINE, ["hostname", "-f"]) == "ok\n"
    assert guest.asked[0]["arguments"] == {
        "path": "/usr/bin/env",
        "arg": ["hostname", "-f"],
        "env": [
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            "USER=root",
            "LOGNAME=root",
            "LANG=C.UTF-8",
        ],
        "capture-output": True,
    }


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((3, "out\n", "no such thing\n"), "on node1: ls '/no such' failed with exit code 3\nno such thing"),
        ((1, "only out\n", ""), "on node1: ls '/no such' failed with exit code 1\nonly out"),
        ((137, "", ""), "on node1: ls '/no such' failed with exit code 137"),
    ],
)
def test_a_program_that_fails(
    running: Path, monkeypatch: pytest.MonkeyPatch, result: tuple[int, str, str], message: str
):
    monkeypatch.setattr(vm, "guest_exec", lambda *_: CommandResult("ls", *result))
    with pytest.raises(LabError) as caught:
        vm.run_inside("unit", MACHINE, ["ls", "/no such"])
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (
            NotAnswering("agent was closed"),
            "on node1: sleep 9: no answer from its guest agent within 7 s (agent was closed)",
            "rackwright lab console node1 opens its serial line",
        ),
        (StillRunning("it took more than 7 s"), "on node1: sleep 9 took more than 7 s", None),
        (
            LabError("it printed more than it may", hint="write it to a file"),
            "on node1: sleep 9: it printed more than it may",
            "write it to a file",
        ),
    ],
)
def test_what_cannot_be_asked_names_node_and_program(
    running: Path, monkeypatch: pytest.MonkeyPatch, error: LabError, message: str, hint: str | None
):
    def fail(*_: object) -> CommandResult:
        raise error

    monkeypatch.setattr(vm, "guest_exec", fail)
    with pytest.raises(type(error)) as caught:
        vm.ask("unit", MACHINE, ["sleep", "9"], 7)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_machine_that_is_off(running: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cgroup, "populated", lambda *_: False)
    for ask in (
        lambda: vm.run_inside("unit", MACHINE, ["true"]),
        lambda: vm.console("unit", MACHINE),
        lambda: vm.monitor_ask("unit", MACHINE, "stop"),
    ):
        with pytest.raises(LabError) as caught:
            ask()
        assert caught.value.message == "node node1 is not running"
        assert caught.value.hint == "rackwright lab status; rackwright lab heal node1"


def test_exec_prints_what_the_program_printed(
    running: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(vm, "guest_exec", lambda *_: CommandResult("x", 5, "out\n", "err\n"))
    assert vm.attach("unit", MACHINE, ["x"]) == 5
    assert capfd.readouterr() == ("out\n", "err\n")


@pytest.mark.parametrize(
    ("greets", "nologin", "ready"),
    [(True, 1, True), (True, 0, False), (True, 127, False), (False, 1, False), (True, None, False)],
)
def test_a_machine_is_ready_when_sshd_greets_and_logins_are_open(
    running: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    greets: bool,
    nologin: int | None,
    ready: bool,
):
    def asked(*_: object) -> CommandResult:
        if nologin is None:
            raise NotAnswering("not yet")
        return CommandResult("test", nologin, "", "")

    monkeypatch.setattr(vm, "ssh_answers", lambda *_: greets)
    monkeypatch.setattr(vm, "guest_exec", asked)
    assert vm.ready(rack(tmp_path, nodes=(MACHINE,)), MACHINE) is ready


def test_a_host_without_qemu_or_firmware_names_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(process.os, "geteuid", lambda: 0)
    monkeypatch.setattr(process.shutil, "which", lambda *_, **__: None)
    with pytest.raises(LabError) as caught:
        vm.require_host()
    assert caught.value.message == (
        "qemu-system-x86_64, qemu-img are missing: apt-get install qemu-system-x86 qemu-utils"
    )
    monkeypatch.setattr(process.shutil, "which", lambda *_, **__: "/usr/bin/found")
    monkeypatch.setattr(qemu, "FIRMWARE", tmp_path / "OVMF.fd")
    with pytest.raises(LabError) as caught:
        vm.require_host()
    assert (caught.value.message, caught.value.hint) == (
        f"{tmp_path}/OVMF.fd is missing",
        "apt-get install ovmf",
    )


def test_the_tail_of_a_console_is_read_without_the_rest(running: Path):
    with (running / "console.log").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, 2)
        file.write(b"\n" + b"".join(b"line %d\n" % number for number in range(40)))
    (running / "qemu.log").write_text("qemu: could not open disk image\n")
    lines = nodes.console_tail("unit", "node1").splitlines()
    assert lines == [*(f"line {number}" for number in range(28, 40)), "qemu: could not open disk image"]


@pytest.mark.parametrize("machine", [True, False])
def test_what_a_rack_needs_of_the_host_follows_from_the_node(
    running: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: bool
):
    """A host of virtual machines heals them without systemd-nspawn, and the other way round."""
    target = MACHINE if machine else node(1)
    spec = rack(tmp_path, nodes=(target,))
    state.save_spec(spec)
    monkeypatch.setattr("rackwright.lab.rack.rack_is_up", lambda _: True)
    monkeypatch.setattr("rackwright.lab.rack.require", lambda _: None)
    required: list[str] = []
    monkeypatch.setattr(vm, "require_host", lambda: required.append("vm"))
    monkeypatch.setattr(container, "require_host", lambda: required.append("container"))
    acted: list[NodeSpec] = []
    monkeypatch.setattr("rackwright.lab.faults.heal", lambda _, node: acted.append(node))
    Rack(spec).heal("node1")
    assert (required, acted) == (["vm" if machine else "container"], [target])


def test_a_containers_boot_is_told_from_the_one_before(
    running: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """By the start of its first process in ticks; file times of /proc change when its cache is dropped."""
    asked: list[list[str]] = []

    def run_inside(rack: str, node: NodeSpec, argv: list[str], timeout: float = 60) -> str:
        asked.append(argv)
        return "1 (odd) name)) S " + " ".join(map(str, range(4, 53)))

    monkeypatch.setattr(container, "run_inside", run_inside)
    assert power._session(rack(tmp_path), node(1)) == "22"
    assert asked == [["cat", "/proc/1/stat"]]


def test_cables_are_made_for_each_port_on_its_networks_bridge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    lines: list[str] = []
    monkeypatch.setattr(network, "batch", lambda namespace, *batch: lines.extend((namespace, *batch)))
    monkeypatch.setattr(network, "remove_node", lambda *_: None)
    one = node(
        1, mtu=1500, extra_addresses=("10.9.0.11/24", "10.9.1.11/24"), extra_mtus=(9000, 4200), vm=MACHINE.vm
    )
    network.make_machine(rack(tmp_path, nodes=(one,)), one)
    bridges = ["rack0", names.bridge("10.9.0.0/24"), names.bridge("10.9.1.0/24")]
    assert lines == [
        line
        for cable, bridge, mtu in zip(
            ("v-node1", "e1-node1", "e2-node1"), bridges, (1500, 9000, 4200), strict=True
        )
        for line in (
            "rw-unit",
            f"tuntap add dev {cable} mode tap vnet_hdr",
            "rw-unit",
            f"link set {cable} mtu {mtu} addrgenmode none master {bridge} up",
        )
    ]
    assert [qemu.tap("node1", number) for number in range(3)] == ["v-node1", "e1-node1", "e2-node1"]


def test_a_record_of_before_there_were_machines_is_refused_by_name(running: Path, tmp_path: Path):
    spec = rack(tmp_path)
    data = spec.to_json()
    for one in data["nodes"]:
        del one["vm"]
    (names.rack_state("unit") / "rack.json").write_text(json.dumps(data))
    with pytest.raises(LabError, match="is from another version of rackwright"):
        state.saved_spec("unit")
