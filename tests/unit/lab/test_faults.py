"""Faults, power and snapshots: what is refused, what is done, and what is recorded, without a rack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, container, faults, names, network, power, snapshots, vm, vm_faults
from rackwright.lab.qemu_socket import NotAnswering
from rackwright.lab.spec import NodeSpec, RackSpec, VmSpec
from tests.unit.lab.specs import node, rack

VM_RACK = "platform: vm in the cluster file"
SHAPE = VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1, data_disks_gb=(4, 4))
MACHINE = node(1, extra_addresses=("10.9.0.11/24", "10.9.1.11/24"), vm=SHAPE)
DISKLESS = node(3, vm=VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1))
CONTAINER = node(2)


class Rack:
    """A rack whose nodes exist as far as the lab looks; what is done to them is written down."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.running = True
        self.spec: RackSpec = rack(folder, nodes=(MACHINE, CONTAINER, DISKLESS))
        self.fails: set[str] = set()
        patch.setattr(names, "RUNTIME", folder / "run")
        for one in self.spec.nodes:
            names.node_state("unit", one.name).mkdir(parents=True)
        patch.setattr(cgroup, "populated", lambda *_: self.running)
        for module, name in (
            (cgroup, "kill"),
            (cgroup, "remove"),
            (cgroup, "freeze"),
            (network, "set_cable"),
            (vm, "monitor_ask"),
            (vm, "run_inside"),
            (vm, "start"),
            (vm, "shut_down"),
            (vm, "ready"),
            (container, "start"),
            (container, "ready"),
            (container, "run_inside"),
        ):
            patch.setattr(module, name, self._noting(name))
        patch.setattr(vm, "ask", self._noting("ask"))
        patch.setattr(vm_faults, "_answers", lambda *_: True)

    def _noting(self, name: str) -> Callable[..., Any]:
        def note(*args: object, **options: object) -> object:
            shown = [one for one in args if not isinstance(one, RackSpec | NodeSpec) and one != "unit"]
            words = [name, *map(str, shown), *(f"{key}={value}" for key, value in options.items())]
            if name not in ("ready", "remove"):
                self.done.append(" ".join(words))
            if name in ("kill", "shut_down"):
                self.running = False
            if name == "start":
                self.running = True
            if name in self.fails:
                raise LabError("it does not work")
            return "" if name in ("monitor_ask", "run_inside") else True

        return note

    def fault(self, target: NodeSpec, kind: str, *args: str) -> list[str]:
        self.done.clear()
        faults.inject(self.spec, target, kind, args)
        return self.done

    def has(self, target: NodeSpec = MACHINE) -> dict[str, list[str]]:
        return faults.recorded("unit", target.name)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rack:
    return Rack(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("target", "fault", "message", "hint"),
    [
        (MACHINE, ("flood",), "unknown fault 'flood'", "faults: kill, pause, cut, slow, fill-disk, sshd-down, "),
        (CONTAINER, ("disk:fail",), "node node2 is a container, and disk:fail needs a virtual machine", VM_RACK),
        (CONTAINER, ("panic",), "node node2 is a container, and panic needs a virtual machine", VM_RACK),
        (CONTAINER, ("clock:jump", "5"), "node node2 is a container, and clock:jump needs a virtual machine", VM_RACK),
        (CONTAINER, ("link:down",), "node node2 is a container, and link:down needs a virtual machine", VM_RACK),
        (CONTAINER, ("power-cut",), "node node2 is a container, and power-cut needs a virtual machine", VM_RACK),
        (MACHINE, ("clock:jump",), "fault clock:jump takes 1 arguments, not 0", "clock:jump SECONDS"),
        (MACHINE, ("disk:fail", "0", "1"), "fault disk:fail takes 0 to 1 arguments, not 2", "disk:fail [DISK]"),
        (MACHINE, ("panic", "now"), "fault panic takes 0 arguments, not 1", "panic"),
        (MACHINE, ("disk:fail", "2"), "node node1 has no data disk '2'", "a number from 0 to 1"),
        (MACHINE, ("disk:fail", "-1"), "node node1 has no data disk '-1'", "a number from 0 to 1"),
        (MACHINE, ("disk:fail", "²"), "node node1 has no data disk '²'", "a number from 0 to 1"),
        (DISKLESS, ("disk:fail",), "node node3 has no data disk", None),
        (MACHINE, ("link:down", "3"), "node node1 has no port '3'", "a number from 0 to 2"),
        (MACHINE, ("clock:jump", "noon"), "clock:jump noon: not a number of seconds", "clock:jump -7200"),
        (MACHINE, ("clock:jump", "400000000"), "clock:jump 400000000: more than ten years", "clock:jump -7200"),
        (MACHINE, ("slow", "10", "200"), "slow 10 200: a loss of 200 % is not between 0 and 100", None),
    ],
)  # fmt: skip
def test_a_fault_that_is_refused_changes_nothing(
    lab: Rack, target: NodeSpec, fault: tuple[str, ...], message: str, hint: str | None
):
    with pytest.raises(LabError) as caught:
        lab.fault(target, *fault)
    assert caught.value.message.startswith(message)
    assert (caught.value.hint or "").startswith(hint or "")
    assert (caught.value.hint is None) == (hint is None)
    assert lab.has(target) == {}  # a recorded fault would keep `up` from the node
    assert lab.done == []


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        (("disk:fail",), ["monitor_ask human-monitor-command command-line=drive_del data1"]),
        (("disk:fail", "0"), ["monitor_ask human-monitor-command command-line=drive_del data0"]),
        (("link:down",), ["monitor_ask set_link name=nic2 up=False"]),
        (("link:down", "0"), ["monitor_ask set_link name=nic0 up=False"]),
        (("clock:jump", "-7200"), ["run_inside ['sh', '-c', 'date -s \"@$(($(date +%s) + -7200))\"']"]),
        (("kill",), ["set_cable node1 up=False", "kill node1"]),
        (("cut",), ["set_cable node1 up=False"]),
    ],
)
def test_what_a_fault_does_to_a_machine(lab: Rack, fault: tuple[str, ...], done: list[str]):
    assert lab.fault(MACHINE, *fault) == done
    assert lab.has() == {fault[0]: list(fault[1:])}


def test_a_drive_that_qemu_will_not_take_away_is_an_error(lab: Rack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vm, "monitor_ask", lambda *_, **__: "Error: Device 'data1' not found\r\n")
    with pytest.raises(LabError, match=r"node1: Error: Device 'data1' not found"):
        lab.fault(MACHINE, "disk:fail")
    assert lab.has() == {"disk:fail": []}  # half done, so heal undoes it


def test_a_fault_of_a_node_that_is_off(lab: Rack):
    lab.running = False
    with pytest.raises(LabError) as caught:
        lab.fault(MACHINE, "cut")
    assert (caught.value.message, caught.value.hint) == (
        "node node1 is not running",
        "rackwright lab heal node1",
    )


@pytest.mark.parametrize("kind", ["disk:fail", "link:down", "panic", "fill-disk", "sshd-down"])
def test_a_paused_machine_is_not_asked_for_what_it_cannot_do(lab: Rack, kind: str):
    lab.fault(MACHINE, "pause")
    with pytest.raises(LabError) as caught:
        lab.fault(MACHINE, kind)
    assert caught.value.message == f"node node1 is paused, and {kind} needs it to run"
    assert lab.has() == {"pause": []}
    lab.fault(MACHINE, "cut")  # what the host does alone


def test_a_power_cut_is_over_at_once_and_ends_what_a_boot_ends(lab: Rack):
    for fault in (
        ("fill-disk",),
        ("link:down",),
        ("cut",),
        ("sshd-down",),
        ("clock:jump", "5"),
        ("disk:fail",),
    ):
        lab.fault(MACHINE, *fault)
    assert lab.fault(MACHINE, "power-cut") == ["kill node1", "start"]
    assert lab.has() == {"fill-disk": []}  # on its disk, so it is still there


def test_heal_undoes_each_fault_of_a_machine_that_runs(lab: Rack):
    for fault in (("fill-disk",), ("link:down", "1"), ("cut",), ("clock:jump", "5"), ("pause",)):
        lab.fault(MACHINE, *fault)
    lab.done.clear()
    faults.heal(lab.spec, MACHINE)
    assert lab.done[:-2] == [
        "freeze False node1",
        "set_cable node1 up=True",
        "monitor_ask set_link name=nic0 up=True",
        "monitor_ask set_link name=nic1 up=True",
        "monitor_ask set_link name=nic2 up=True",
    ]
    assert lab.done[-2].startswith("run_inside ['date', '-s', '@")
    assert lab.done[-1] == "run_inside ['rm', '-f', '/var/lib/rackwright-lab-fill']"
    assert lab.has() == {}


@pytest.mark.parametrize("kind", ["panic", "disk:fail"])
def test_some_faults_need_a_power_cycle(lab: Rack, kind: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vm_faults, "_answers", lambda *_: False)
    monkeypatch.setattr(vm, "start_inside", lambda *_: None)
    lab.fault(MACHINE, kind)
    lab.done.clear()
    faults.heal(lab.spec, MACHINE)
    assert lab.done == ["kill node1", "start"]
    assert lab.has() == {}


@pytest.mark.parametrize(
    ("written", "cycled"),
    [
        ("Kernel panic - not syncing: oops\r\n---[ end Kernel panic - not syncing: oops ]---\r\n", True),
        ("Kernel panic - not syncing: oops\r\nRebooting in 10 seconds..\r\n", False),
        ("---[ end Kernel panic - not syncing: oops ]---\r\nLinux version 6.12\r\nlogin: ", False),
        ("", False),
    ],
)
def test_a_kernel_that_panicked_by_itself_needs_a_power_cycle(lab: Rack, written: str, cycled: bool):
    log = names.node_state("unit", MACHINE.name) / "console.log"
    log.write_text(written)
    faults.heal(lab.spec, MACHINE)
    assert (lab.done == ["kill node1", "start"]) is cycled


@pytest.mark.parametrize("off", ["kill", "disk:fail"])
def test_a_full_disk_is_emptied_on_a_machine_that_has_to_boot_first(lab: Rack, off: str):
    lab.fault(MACHINE, "fill-disk")
    lab.fault(MACHINE, off)
    lab.done.clear()
    faults.heal(lab.spec, MACHINE)
    assert lab.done[-2:] == ["start", "run_inside ['rm', '-f', '/var/lib/rackwright-lab-fill']"]
    assert lab.has() == {}


def test_an_unknown_power_action(lab: Rack):
    with pytest.raises(LabError) as caught:
        power.act(lab.spec, MACHINE, "reset")
    assert (caught.value.message, caught.value.hint) == (
        "unknown power action 'reset'",
        "one of on, off, soft, cycle",
    )
    assert lab.done == []


@pytest.mark.parametrize(
    ("action", "running", "done"),
    [
        ("on", True, []),
        ("on", False, ["start"]),
        ("off", True, ["set_cable node1 up=False", "kill node1"]),
        ("soft", True, ["shut_down 300.0"]),
        ("soft", False, []),
        ("cycle", True, ["set_cable node1 up=False", "kill node1", "start"]),
        ("cycle", False, ["set_cable node1 up=False", "kill node1", "start"]),
    ],
)
def test_power(lab: Rack, action: str, running: bool, done: list[str]):
    lab.running = running
    power.act(lab.spec, MACHINE, action)
    assert lab.done == done


def test_a_machine_that_is_switched_on_has_only_the_faults_of_its_disk(lab: Rack):
    for kind in ("fill-disk", "link:down", "kill"):
        lab.fault(MACHINE, kind)
    power.act(lab.spec, MACHINE, "on")
    assert lab.has() == {"fill-disk": []}


def test_a_container_that_is_switched_on_has_an_empty_disk_too(lab: Rack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(faults.FAULTS, "fill-disk", faults.Fault(lambda *_: None, "fill-disk"))
    for kind in ("fill-disk", "kill"):
        lab.fault(CONTAINER, kind)
    power.act(lab.spec, CONTAINER, "on")
    assert lab.has(CONTAINER) == {}


@pytest.mark.parametrize("name", ["", "-d", "a/b", "..", "a b", ".hidden", "n" * 64])
def test_a_name_that_no_snapshot_may_have(lab: Rack, name: str):
    with pytest.raises(LabError) as caught:
        snapshots.take(lab.spec, MACHINE, name)
    assert (caught.value.message, caught.value.hint) == (
        f"{name!r} is not a name of a snapshot",
        "e.g. before-upgrade",
    )
    assert lab.done == []


@pytest.mark.parametrize("act", [snapshots.take, snapshots.restore])
def test_containers_have_no_snapshots(lab: Rack, act: Callable[[RackSpec, NodeSpec, str], None]):
    with pytest.raises(LabError) as caught:
        act(lab.spec, CONTAINER, "default")
    assert (caught.value.message, caught.value.hint) == (
        "node node2 is a container, which has no snapshots",
        VM_RACK,
    )


def test_an_unknown_snapshot_is_answered_with_the_known_ones(
    lab: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path / "lab"))
    with pytest.raises(LabError) as caught:
        snapshots.restore(lab.spec, MACHINE, "before")
    assert (caught.value.message, caught.value.hint) == (
        "node node1 has no snapshot 'before'",
        "rackwright lab snapshot node1 before",
    )
    folder = vm.disk_folder("unit", "node1")
    folder.mkdir(parents=True)
    for kept in ("variables.fd", "root.qcow2", "snapshot.clean", "snapshot.v1.2"):
        (folder / kept).touch()
    with pytest.raises(LabError) as caught:
        snapshots.restore(lab.spec, MACHINE, "before")
    assert caught.value.hint == "it has clean, v1.2"
    with pytest.raises(LabError, match="node1 has no snapshot 'fd'"):  # the machine's own variables are none
        snapshots.restore(lab.spec, MACHINE, "fd")
    assert lab.done == []  # it runs on


class Guest:
    """The guest agent, which may refuse or take too long to freeze."""

    def __init__(self, lab: Rack, fails: str = "") -> None:
        self._done, self._fails = lab.done, fails

    def __call__(self, path: Path, timeout: float) -> Guest:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def ask(self, execute: str) -> int:
        self._done.append(execute)
        if execute == self._fails:
            raise NotAnswering("no answer in time")
        return 1


@pytest.fixture
def disks(lab: Rack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a machine's disks, as far as snapshots look at it."""
    monkeypatch.setenv("RACKWRIGHT_LAB_DIR", str(tmp_path / "lab"))
    monkeypatch.setattr(snapshots, "run", lambda argv, timeout: lab.done.append(" ".join(argv)))
    folder = vm.disk_folder("unit", "node1")
    folder.mkdir(parents=True)
    (folder / "variables.fd").write_text("boot order")
    return folder


TRANSACTION = "monitor_ask transaction actions=" + str(
    [
        {"type": "blockdev-snapshot-internal-sync", "data": {"device": drive, "name": "one"}}
        for drive in ("root", "data0", "data1")
    ]
)


def test_a_snapshot_of_a_running_machine_is_of_all_disks_at_one_moment(
    lab: Rack, disks: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(snapshots, "agent", Guest(lab))
    snapshots.take(lab.spec, MACHINE, "one")
    assert lab.done == ["guest-fsfreeze-freeze", TRANSACTION, "guest-fsfreeze-thaw"]
    assert (disks / "snapshot.one").read_text() == "boot order"
    lab.done.clear()
    snapshots.take(lab.spec, MACHINE, "one")  # takes the place of the first
    assert lab.done == [
        *(
            f"monitor_ask blockdev-snapshot-delete-internal-sync device={drive} name=one"
            for drive in ("root", "data0", "data1")
        ),
        "guest-fsfreeze-freeze",
        TRANSACTION,
        "guest-fsfreeze-thaw",
    ]


@pytest.mark.parametrize("fails", ["guest-fsfreeze-freeze", "monitor_ask"])
def test_a_snapshot_that_fails_leaves_no_frozen_machine(
    lab: Rack, disks: Path, monkeypatch: pytest.MonkeyPatch, fails: str
):
    monkeypatch.setattr(snapshots, "agent", Guest(lab, fails))
    lab.fails.add(fails)
    with pytest.raises(LabError):
        snapshots.take(lab.spec, MACHINE, "one")
    assert lab.done[-1] == "guest-fsfreeze-thaw"
    assert not (disks / "snapshot.one").exists()


def test_a_snapshot_of_a_machine_that_is_off_and_back(lab: Rack, disks: Path):
    lab.running = False
    snapshots.take(lab.spec, MACHINE, "one")
    files = [disks / name for name in ("root.qcow2", "data0.qcow2", "data1.qcow2")]
    assert lab.done == [f"qemu-img snapshot -c one {file}" for file in files]
    (disks / "variables.fd").write_text("another boot order")
    lab.running = True
    lab.fault(MACHINE, "fill-disk")
    lab.done.clear()
    snapshots.restore(lab.spec, MACHINE, "one")
    assert lab.done == ["kill node1", *(f"qemu-img snapshot -a one {file}" for file in files), "start"]
    assert (disks / "variables.fd").read_text() == "boot order"
    assert lab.has() == {}  # the disk of then was not full
