"""PXE: answers for exactly the machines that are armed, whose tokens are gone when they are not."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from rackwright.bmc.interface import BootTarget
from rackwright.errors import ImageError, InstallError
from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.boot_ways import BootWays, way_of
from rackwright.install.desk import Case
from rackwright.install.medium import VirtualMedia
from rackwright.install.netboot import NetbootMedium, NetbootServer, dnsmasq_conf, new_folder
from rackwright.install.record import Journal, Record
from rackwright.model.bmc import BmcProtocol
from rackwright.model.install import BootWay
from tests.unit.install.fake_machine import FakeMachine
from tests.unit.install.site import changed, mac, make_site, make_worker

WORKERS = [changed(make_worker(number), boot=BootWay.PXE) for number in (1, 2)]


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    for name in (KERNEL, INITRAMFS, SHIM, GRUB_NET):
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def server(agent, tmp_path):
    cluster = make_site(*WORKERS)
    (tmp_path / "netboot").mkdir()
    return NetbootServer(cluster, cluster.boot_network, agent, b"CA", tmp_path / "netboot")


def medium(server, number):
    return NetbootMedium(WORKERS[number - 1], server.cluster, server.network, server)


def record(number, **more):
    return Record(f"worker{number}", run=f"run{number}", mode="install", mac=mac(number), serial="S", **more)


def served(server):
    return {path.name for path in (server.folder / "tftp/grub/mac").iterdir()}


def test_two_are_armed_and_one_is_ready(server):
    for number in (1, 2):
        assert medium(server, number).make(record(number), f"token-{number}") == "pxe"
    assert served(server) == {mac(1), f"{mac(1)}.img", mac(2), f"{mac(2)}.img"}
    assert (server.folder / "hosts").read_text() == (
        f"{mac(1)},10.9.0.11,worker1\n{mac(2)},10.9.0.12,worker2\n"
    )
    assert b"token-1" in (server.folder / f"tftp/grub/mac/{mac(1)}.img").read_bytes()
    assert "token-1" not in (server.folder / f"tftp/grub/mac/{mac(1)}").read_text(), (
        "the kernel's command line"
    )
    machine = FakeMachine(1)
    medium(server, 1).insert(machine, "pxe")
    assert (machine.override.target, machine.override.once) == (BootTarget.PXE, True)
    medium(server, 1).remove(machine)
    assert machine.override.target is BootTarget.NONE
    assert served(server) == {mac(2), f"{mac(2)}.img"}
    assert (server.folder / "hosts").read_text() == f"{mac(2)},10.9.0.12,worker2\n"
    everything = b"".join(path.read_bytes() for path in server.folder.rglob("*") if path.is_file())
    assert b"token-1" not in everything
    assert b"token-2" in everything


def test_its_token_is_gone_also_where_its_bmc_fails(server):
    medium(server, 1).make(record(1), "token-1")
    machine = FakeMachine(1)
    machine.silent(True)
    with pytest.raises(Exception, match="does not answer"):
        medium(server, 1).remove(machine)
    assert served(server) == set()


def test_one_that_cannot_be_answered_keeps_no_other_from_it(server):
    with pytest.raises(ImageError, match="not a MAC address"):
        medium(server, 1).make(Record("worker1", run="run1", mode="install", mac="odd"), "token-1")
    medium(server, 2).make(record(2), "token-2")
    assert served(server) == {mac(2), f"{mac(2)}.img"}


def test_the_port_is_the_one_that_the_bmc_reports_where_none_is_declared(server):
    node = WORKERS[0].model_copy(update={"mac": None})
    NetbootMedium(node, server.cluster, server.network, server).make(record(1), "t")
    assert mac(1) in served(server)


def test_a_node_without_an_address_there(server):
    node = WORKERS[0].model_copy(update={"addresses": ()})
    with pytest.raises(
        InstallError, match="worker1 has no address on management, which it would get for PXE"
    ) as left:
        NetbootMedium(node, server.cluster, server.network, server).make(record(1), "t")
    assert left.value.hint == "`addresses: {management: ...}` in its group, or `boot: virtual-media`"


def test_others_on_the_control_node_cannot_read_tokens(server):
    """dnsmasq as root serves only what all can read: the folder around it is closed."""
    before = os.umask(0o077)
    medium(server, 1).make(record(1), "token-1")
    os.umask(before)
    files = [path for path in (server.folder / "tftp").rglob("*") if path.is_file()]
    assert len(files) == 7
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o644}
    with new_folder() as made:
        assert stat.S_IMODE(Path(made).stat().st_mode) == 0o700
    assert not Path(made).exists()


def test_dnsmasq_takes_its_settings(server, tmp_path):
    (tmp_path / "conf").write_text(dnsmasq_conf(server.cluster, server.network, server.folder))
    done = subprocess.run(
        ["dnsmasq", "--test", f"--conf-file={tmp_path / 'conf'}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_strangers_get_no_answer(server):
    conf = dnsmasq_conf(server.cluster, server.network, server.folder).splitlines()
    assert {"dhcp-ignore=tag:!known", "port=0", "bind-interfaces", "listen-address=127.0.0.1"} <= set(conf)
    assert "dhcp-range=10.9.0.0,static,255.255.255.0" in conf


def test_dnsmasq_that_is_missing(server, monkeypatch):
    monkeypatch.setattr("rackwright.install.netboot.which", lambda name: None)
    with pytest.raises(InstallError, match="dnsmasq, which `boot: pxe` needs, is missing"):
        server.start()


def test_each_machine_gets_the_declared_way(server, agent, tmp_path, monkeypatch):
    monkeypatch.setattr(NetbootServer, "start", lambda self: None)
    cd = make_worker(3)
    cluster = make_site(*WORKERS, cd)
    ways = BootWays(cluster, cluster.boot_network, agent, b"CA")
    cases = [Case(node, Journal("test", node.name), lambda _: {}, None) for node in (WORKERS[0], cd)]
    with ways.serving([*WORKERS, cd]):
        assert [type(ways.of(case)) for case in cases] == [NetbootMedium, VirtualMedia]
    with BootWays(cluster, cluster.boot_network, agent, b"CA").serving([cd]):
        pass


def test_a_discovery_takes_what_the_bmc_can_do():
    bare = make_worker().model_copy(update={"install": None})
    assert way_of(bare) is BootWay.VIRTUAL_MEDIA
    ipmi = bare.bmc.model_copy(update={"protocol": BmcProtocol.IPMI})
    assert way_of(bare.model_copy(update={"bmc": ipmi})) is BootWay.PXE
    assert way_of(WORKERS[0]) is BootWay.PXE
