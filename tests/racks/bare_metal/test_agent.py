"""Machines under qemu that boot the agent from its medium, and what they become."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.install import agent_image, media
from rackwright.lab.netns import open_socket, socket_inside
from tests.racks.bare_metal import certificates, wire
from tests.racks.bare_metal.head import PORT, Head
from tests.racks.bare_metal.machine import MAC, SERIAL, Machine, disk_serial

pytestmark = [pytest.mark.lab, pytest.mark.proof]

RUN = "k3x9ab12"
_RACK = "agenttest"
_INSTALL_SECONDS, _BOOT_SECONDS = 900.0, 420.0
_CLUSTER = """\
version: 1
cluster: {name: agenttest, domain: lab.test}
defaults: {os: debian-13, platform: vm, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
  out-of-band: {purpose: bmc, cidr: 10.78.0.0/24}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
boot_network: {server: 10.77.0.1}
nodes:
  - nodes: node1
    roles: [head]
    addresses: {management: 10.77.0.11}
    macs: ["02:00:5e:10:00:11"]
    bmc: {address: 10.78.0.11, user: admin, password: bmc_password}
    install: {image: root, mirror: true, disk: {serials: [RW-disk0, RW-disk1]}}
roles: {}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """root.tar.zst of a node whose disks are a mirror."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "cluster.yaml").write_text(_CLUSTER)
    cluster = load_cluster(folder / "cluster.yaml")
    built = build(order(cluster, cluster.nodes, "root", 16), folder / "image", print)
    assert "mdadm" in {package.name for package in built.packages}
    return folder / "image/root.tar.zst"


@pytest.fixture(scope="module")
def agent() -> Path:
    """The agent image."""
    return agent_image.ensure(print)


class Bench:
    """A head, a medium and a machine on one wire."""

    def __init__(self, folder: Path, namespace: str, agent: Path, image: Path) -> None:
        self.folder, self.namespace, self.agent = folder, namespace, agent
        self.ca, chain = certificates.make(folder, wire.HEAD)
        listener = socket_inside(namespace)
        assert listener is not None
        listener.bind((wire.HEAD, PORT))
        listener.listen(64)
        self.head = Head(listener, chain, image)
        self.medium = folder / "agent.iso"

    def arm(self, **changes: Any) -> None:
        """Make the medium."""
        media.make_iso(self.agent, self.config(**changes), self.ca, self.medium)

    def config(self, **changes: Any) -> bytes:
        """config.json of the machine."""
        network = {"mac": MAC, "address": f"{wire.NODE}/{wire.PREFIX}", "gateway": None, "vlan": None}
        config = {
            "version": 1,
            "server": f"https://{wire.HEAD}:{PORT}",
            "token": self.head.token,
            "node": "node1",
            "run": RUN,
            "serial": SERIAL,
            "mode": "install",
            "network": network,
            **changes,
        }
        return json.dumps(config).encode()

    def install(self, document: dict[str, Any], count: int, **changes: Any) -> dict[str, Any]:
        """An order for the first disks of an inventory, as they are."""
        files = {
            "/etc/hostname": "node1\n",
            "/etc/systemd/network/20-install.network": (
                f"[Match]\nMACAddress={MAC}\n[Network]\nAddress={wire.NODE}/{wire.PREFIX}\n"
            ),
        }
        return {
            "node": "node1",
            "run": RUN,
            "disks": [
                {key: disk[key] for key in ("path", "serial", "signatures")}
                for disk in document["disks"][:count]
            ],
            "mirror": count == 2,
            "volumes": "plain",
            "encryption": None,
            "image": self.head.described(),
            "files": [
                {"path": path, "content": text, "mode": 0o644, "uid": 0, "gid": 0}
                for path, text in files.items()
            ],
            "kernel_arguments": f"console=tty0 console=ttyS0,115200 rackwright.run={RUN}",
            "secure_boot": False,
            "console": "ttyS0,115200",
            **changes,
        }

    def greeted(self, seconds: float) -> str:
        """The first words of the node's sshd."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                connection = open_socket(_RACK, wire.NODE, 22, 5)
                assert connection is not None
                with connection:
                    if said := connection.recv(64):
                        return said.decode()
            except OSError:
                pass
            time.sleep(1)
        raise AssertionError("no sshd answered")


@pytest.fixture
def bench(tmp_path: Path, agent: Path, root: Path) -> Iterator[Bench]:
    """A wire with a head."""
    with wire.wire(_RACK) as namespace:
        made = Bench(tmp_path, namespace, agent, root)
        yield made
        made.head.close()
    assert not wire.exists(_RACK)


@pytest.fixture
def machines() -> Iterator[ExitStack]:
    """Machines that are off in the end, however a test ends."""
    with ExitStack() as stack:
        yield stack


def _ask(machine: Machine, command: str, end: str) -> str:
    """What a command prints on the serial console, where root is logged in."""
    machine.type(f"{command}; echo {end[:2]}''{end[2:]}")
    machine.wait_for(end, 120)
    return machine.said()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.mark.smoke
def test_one_disk_with_data_is_held_untouched_then_installed_and_boots(bench: Bench, machines: ExitStack):
    machine = Machine(bench.folder, bench.namespace, 1)
    machines.callback(machine.off)
    machine.write(0, ["mke2fs", "-q", "-F", "-t", "ext4", "-L", "precious"])
    before, while_held = _digest(machine.disks[0]), []

    def decide(document: dict[str, Any], count: int) -> dict[str, Any]:
        if count < 3:
            while_held.append(_digest(machine.disks[0]))
            return {"action": "wait", "reasons": ["the disk is not empty"], "seconds": 1}
        return {"action": "install", "install": bench.install(document, 1)}

    bench.head.decide = decide
    bench.head.breaks_at = [50_000_000, 120_000_000]
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(_INSTALL_SECONDS)

    assert bench.head.failed is None
    assert while_held == [before, before]
    (disk,) = bench.head.inventories[0]["disks"]
    assert (disk["serial"], disk["signatures"]) == (disk_serial(machine.disks[0]), ["/dev/vda:ext4:precious"])
    assert bench.head.hello is not None
    assert bench.head.hello["serial"] == bench.head.inventories[0]["dmi"]["product_serial"] == SERIAL
    assert bench.head.ranges == ["bytes=0-", "bytes=50000000-", "bytes=120000000-"]
    assert bench.head.done is not None
    assert (bench.head.done["run"], bench.head.done["disks"]) == (RUN, ["/dev/vda"])
    assert bench.head.token not in machine.said()
    assert bench.head.session not in machine.said()

    machine.start()
    assert bench.greeted(_BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = _ask(machine, "cat /proc/cmdline; lsblk -no PARTLABEL; cat /etc/ssh/*_ed25519_key.pub", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert {"esp0", "root0"} <= set(said.split())
    assert bench.head.done["host_keys"]["ed25519"].split()[1] in said
    said = _ask(
        machine, "ls /rackwright; findmnt -no FSTYPE /boot/efi; systemctl --failed --no-legend", "DONE2"
    )
    assert "cannot access '/rackwright'" in said
    assert "vfat" in said.split()


def test_a_mirror_boots_from_its_second_disk_alone(bench: Bench, machines: ExitStack):
    machine = Machine(bench.folder, bench.namespace, 2)
    machines.callback(machine.off)
    bench.head.decide = lambda document, _: {"action": "install", "install": bench.install(document, 2)}
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(_INSTALL_SECONDS)
    assert bench.head.failed is None
    assert bench.head.done is not None
    assert bench.head.done["disks"] == ["/dev/vda", "/dev/vdb"]

    machine.start(disks=machine.disks[1:])
    assert bench.greeted(_BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = _ask(machine, "cat /proc/cmdline /proc/mdstat; findmnt -no SOURCE /; lsblk -no PARTLABEL", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert "active raid1" in said
    assert "[2/1]" in said
    assert {"esp1", "root1"} <= set(said.split())


def test_a_node_without_disks_goes_on_from_memory(bench: Bench, machines: ExitStack):
    machine = Machine(bench.folder, bench.namespace, 0)
    machines.callback(machine.off)
    bench.head.decide = lambda document, _: {"action": "ramdisk", "install": bench.install(document, 0)}
    bench.arm()
    machine.start(bench.medium)
    assert bench.greeted(_INSTALL_SECONDS).startswith("SSH-2.0-")
    assert bench.head.done is not None
    machine.wait_for("root@node1", 120)
    said = _ask(machine, "cat /proc/cmdline; findmnt -no FSTYPE /; ls /rackwright", "DONE1")
    assert f"rackwright.run={RUN}" in said
    assert bench.head.token not in said
    assert "tmpfs" in said.split()
    assert "cannot access '/rackwright'" in said


def test_another_machine_does_nothing(bench: Bench, machines: ExitStack):
    machine = Machine(bench.folder, bench.namespace, 1)
    machines.callback(machine.off)
    before = _digest(machine.disks[0])
    bench.arm(serial="SN-OTHER")
    machine.start(bench.medium)
    machine.wait_off(_BOOT_SECONDS)
    assert "serial number is 'SN-11', and node1 is declared as 'SN-OTHER'" in machine.said()
    assert bench.head.hello is None
    assert _digest(machine.disks[0]) == before


def test_a_machine_without_a_medium_boots_over_the_network(bench: Bench, machines: ExitStack):
    """qemu's own DHCP and TFTP, which lead 10.77.0.1 to this machine's loopback."""
    machine = Machine(bench.folder, bench.namespace, 0)
    machines.callback(machine.off)
    listener = socket_inside(bench.namespace)
    assert listener is not None
    listener.bind(("127.0.0.1", PORT))
    listener.listen(64)
    head = Head(listener, bench.folder / "server.pem")
    served = bench.folder / "served"
    dynamic = {"mac": MAC, "address": None, "gateway": None, "vlan": None}
    config = bench.config(network=dynamic, token=head.token, mode="discover")
    media.netboot_files(bench.agent, served, [media.Armed(MAC, config, bench.ca)])
    machine.network = f"user,net=10.77.0.0/24,host={wire.HEAD},tftp={served},bootfile=shimx64.efi"
    machine.start()
    machine.wait_off(_BOOT_SECONDS)
    head.close()
    assert [nic["mac"] for nic in head.inventories[0]["nics"]] == [MAC]
    assert "the head ends it: the test is over" in machine.said()


def test_the_token_is_in_no_text_that_the_boot_loader_reads(bench: Bench):
    bench.arm()
    assert bench.medium.stat().st_mode & 0o777 == 0o600
    extract = ["xorriso", "-osirrox", "on", "-indev", str(bench.medium), "-extract", "/boot/grub/grub.cfg"]
    target = bench.folder / "grub.cfg"
    subprocess.run([*extract, str(target)], check=True, capture_output=True, timeout=60)
    assert f"rackwright.run={RUN}" in target.read_text()
    assert bench.head.token not in target.read_text()
