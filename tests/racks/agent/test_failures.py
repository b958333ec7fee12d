"""What goes wrong around a machine while it is installed: clocks, networks, images and disks."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from rackwright.install.strangers import answering
from rackwright.lab.netns import socket_inside
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, INSTALL_SECONDS, RUN, Bench
from tests.racks.agent.machine import MAC, Machine
from tests.racks.patience import until

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def test_a_clock_without_a_battery_is_set_before_anything_is_written(bench: Bench):
    machine = bench.machine(1)
    machine.clock = "2000-01-01T00:00:00"
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(BOOT_SECONDS)
    assert bench.head.hello is not None
    assert time.gmtime(bench.head.hello["clock"]).tm_year == 2000
    assert abs(bench.head.inventories[0]["clock"] - time.time()) < 300


def test_a_strangers_dhcp_server_is_not_asked(bench: Bench):
    """A machine that boots from its BMC's CD takes its address from there, not from the network."""
    with _strangers_dhcp(bench) as log:
        machine = bench.machine(1)
        bench.arm()
        machine.start(bench.medium)
        machine.wait_off(BOOT_SECONDS)
        assert bench.head.inventories
        assert MAC not in log.read_text()


def test_a_strangers_dhcp_server_is_found_before_a_machine_asks_it(bench: Bench):
    """With its own address on the wire; one that ignores the machine does not disturb."""
    assert _answering(bench) == {}
    with _strangers_dhcp(bench):
        assert _answering(bench) == {MAC: wire.STRANGER}
    with _strangers_dhcp(bench, f"--dhcp-host={MAC},ignore"):
        assert _answering(bench) == {}


def test_an_image_that_is_not_the_announced_one_ends_the_installation(bench: Bench):
    machine = bench.machine(1)
    announced = {**bench.head.described(), "sha256": "0" * 64}
    _install(bench, machine, image=announced)
    assert f"and {'0' * 64} was announced" in _failure(bench)
    _left_unfinished(machine)


def test_a_disk_that_is_too_small_for_the_image_ends_the_installation(bench: Bench):
    machine = bench.machine(1, mib=900)
    _install(bench, machine)
    assert f"no space left: {bench.head.described()['name']} does not fit" in _failure(bench)
    _left_unfinished(machine)


def _install(bench: Bench, machine: Machine, **changes: Any) -> None:
    bench.head.decide = lambda document, _: {
        "action": "install",
        "install": bench.install(document, 1, **changes),
    }
    bench.arm()
    machine.start(bench.medium)
    machine.wait_off(INSTALL_SECONDS)


def _failure(bench: Bench) -> str:
    assert bench.head.done is None
    assert bench.head.failed is not None
    reason: str = bench.head.failed["error"]
    return reason


def _left_unfinished(machine: Machine) -> None:
    """The partitions still have the name by which a later run knows its own unfinished work."""
    raw = machine.folder / "raw"
    convert = ["qemu-img", "convert", "-O", "raw", machine.disks[0], raw]
    subprocess.run(convert, check=True, timeout=300)
    listed = ["sfdisk", "--dump", raw]
    table = subprocess.run(listed, check=True, timeout=60, capture_output=True, text=True).stdout
    assert table.count(f'name="rw-unfinished-{RUN}"') == table.count("start=") == 2, table


def _answering(bench: Bench) -> dict[str, str]:
    asking = socket_inside(bench.namespace, socket.SOCK_DGRAM)
    assert asking is not None
    network = IPv4Network(f"{wire.HEAD}/{wire.PREFIX}", strict=False)
    return answering(asking, IPv4Address(wire.HEAD), network, [MAC])


@contextmanager
def _strangers_dhcp(bench: Bench, *options: str) -> Iterator[Path]:
    """A DHCP server on the wire that would have every machine boot something else; its log."""
    log = bench.folder / "stranger.log"
    with wire.stranger(bench.namespace) as namespace, log.open("wb") as out:
        argv = ["ip", "netns", "exec", namespace, "setpriv", "--pdeathsig", "TERM", "--", "dnsmasq"]
        argv += ["--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--interface=eth0"]
        argv += ["--bind-interfaces", "--user=root", "--log-dhcp", "--leasefile-ro", "--log-facility=-"]
        argv += ["--dhcp-range=10.77.0.100,10.77.0.150", "--dhcp-boot=stranger.efi"]
        argv += [f"--pid-file={bench.folder / 'pid'}", *options]
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            until(lambda: "IP range" in log.read_text(), "a DHCP server of a stranger", 30)
            yield log
            assert server.poll() is None, log.read_text()
        finally:
            server.terminate()
            server.wait(30)
