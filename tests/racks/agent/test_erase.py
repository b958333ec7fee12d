"""A machine under qemu whose disks are erased: held untouched until its serial number is typed, and then nothing is left."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import InstallError
from rackwright.install import agent_image, erasure_certificate, media
from rackwright.install.authority import credentials_in
from rackwright.install.desk import Case, Desk
from rackwright.install.erasure import MODE
from rackwright.install.medium import config
from rackwright.install.record import Journal
from rackwright.install.run import confirm
from rackwright.install.server import Server
from rackwright.install.settings import boot_network
from rackwright.install.states import State
from rackwright.install.tokens import digest, new_token
from rackwright.lab.netns import socket_inside
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, CLUSTER, RACK, RUN
from tests.racks.agent.machine import SERIAL, Machine

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_ERASE_SECONDS = 600.0
_SIZE = 96 << 20
_PATTERN = b"rackwright-erase-test secret %08d\n"


class DiskMachine(Machine):
    """With a virtio disk and an NVMe disk, raw files that are full of the pattern."""

    def __init__(self, folder: Path, namespace: str) -> None:
        super().__init__(folder, namespace, 0)
        self.raw = {"vda": folder / "virtio.raw", "nvme0n1": folder / "nvme.raw"}
        line = len(_PATTERN % 0)
        for path in self.raw.values():
            text = b"".join(_PATTERN % number for number in range(_SIZE // line + 1))
            path.write_bytes(text[:_SIZE])
        # nodiscard: else it would remove the pattern itself
        mke2fs = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", "precious", "-E", "nodiscard"]
        subprocess.run([*mke2fs, self.raw["vda"]], check=True, timeout=60)

    def digests(self) -> dict[str, str]:
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.raw.items()}

    def _command(self, medium: Path | None, disks: Sequence[Path]) -> list[str]:
        words = super()._command(medium, disks)
        for name, device in (("vda", "virtio-blk-pci"), ("nvme0n1", "nvme")):
            drive = f"if=none,id={name},format=raw,cache=unsafe,discard=unmap,file={self.raw[name]}"
            words += ["-drive", drive, "-device", f"{device},drive={name},serial=RW-{name}"]
        return words


class Head:
    """The head's own journal, desk and server, for a machine whose BMC the test plays."""

    def __init__(self, folder: Path, namespace: str) -> None:
        (folder / "cluster.yaml").write_text(CLUSTER)
        self.cluster = load_cluster(folder / "cluster.yaml")
        (self.node,) = self.cluster.nodes
        network = boot_network(self.cluster)
        credentials = credentials_in(folder, frozenset({IPv4Address(wire.HEAD)}))
        self.journal, token = Journal(RACK, self.node.name), new_token()
        self.journal.move(State.PRECHECKED, run=RUN, mode=MODE, serial=SERIAL, mac=self.node.mac)
        until = time.time() + BOOT_SECONDS
        self.journal.move(State.ARMED, token=digest(token), token_until=until)
        desk = Desk()
        desk.open(Case(self.node, self.journal, lambda verdict: {}, None, mode=MODE))
        listener = socket_inside(namespace)
        assert listener is not None
        listener.bind((wire.HEAD, network.port))
        listener.listen(64)
        self.server = Server(desk, [listener], credentials.chain)
        self.medium = folder / "agent.iso"
        document = config(self.cluster, self.node, network, self.journal.record, token)
        media.make_iso(agent_image.ensure(print), json.dumps(document).encode(), credentials.ca, self.medium)

    def wait_for(self, state: State, machine: Machine, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.journal.record.state is not state:
            now = self.journal.record
            assert now.state is not State.FAILED, now.reason
            assert time.monotonic() < deadline, f"{now.state}: {machine.said()[-3000:]}"
            time.sleep(1)


@pytest.fixture
def namespace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with wire.wire(RACK) as made:
        yield made
    assert not wire.exists(RACK)


def test_nothing_of_the_disks_is_left_and_nothing_is_written_before(tmp_path: Path, namespace: str):
    head = Head(tmp_path, namespace)
    machine = DiskMachine(tmp_path, namespace)
    before = machine.digests()
    try:
        machine.start(head.medium)
        head.wait_for(State.HELD, machine, BOOT_SECONDS)
        (held,) = head.journal.record.held.values()
        assert "/dev/vda:ext4:precious" in held
        assert any(line.startswith("/dev/nvme0n1 (serial RW-nvme0n1, QEMU NVMe Ctrl)") for line in held)
        with pytest.raises(InstallError, match="is not the serial number of node1's machine"):
            confirm(head.cluster, head.node, "RW-vda", MODE)
        time.sleep(12)  # it shows its inventory twice more
        assert head.journal.record.state is State.HELD
        assert machine.digests() == before

        confirm(head.cluster, head.node, SERIAL, MODE)
        machine.wait_off(_ERASE_SECONDS)
    finally:
        machine.off()
        head.server.close()

    record = head.journal.record
    assert (record.state, record.reason) == (State.ERASED, "2 disks erased and verified")
    assert record.stands is record.was_ready is False
    found = erasure_certificate.find(RACK, record)
    assert found is not None
    disks = {one["serial"]: one for one in found[1]["disks"]}
    assert found[1]["result"] == "erased"
    assert disks["RW-vda"]["method"] in ("write-zeroes", "overwrite")
    assert disks["RW-nvme0n1"]["method"] == "nvme-format-user-data-erase"
    assert all(one["verified"] and one["samples"] == 66 for one in disks.values())
    assert all(one["samples_with_data_before"] > 0 for one in disks.values())
    for path in machine.raw.values():
        content = path.read_bytes()
        assert len(content) == _SIZE
        assert b"rackwright-erase-test" not in content
        assert b"precious" not in content
        assert not content.strip(b"\0"), "qemu's disks read as zeros once they are erased"
