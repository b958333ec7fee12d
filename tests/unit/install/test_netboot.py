"""PXE and HTTP boot: answers for exactly the machines that are armed, whose tokens are gone when they are not."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from rackwright.bmc.interface import BootTarget
from rackwright.errors import ImageError, InstallError
from rackwright.install.boot_ways import BootWays
from rackwright.install.desk import Case
from rackwright.install.dnsmasq import dnsmasq_conf
from rackwright.install.medium import VirtualMedia, way_of
from rackwright.install.netboot import NETBOOT, NetbootMedium, NetbootServer, new_folder, serving
from rackwright.install.record import Journal, Record
from rackwright.model.bmc import BmcProtocol
from rackwright.model.install import BootWay
from tests.unit.install.fake_machine import FakeMachine
from tests.unit.install.netboot_site import BY_HTTP, HERE, NODES, WORKERS, hosts, medium, record, served
from tests.unit.install.site import changed, mac, make_boot_network, make_site, make_worker


def test_two_are_armed_and_one_is_ready(server):
    for number in (1, 2):
        assert medium(server, number).make(record(number), f"token-{number}") == "pxe"
    assert served(server) == {mac(1), f"{mac(1)}.img", mac(2), f"{mac(2)}.img"}
    assert hosts(server) == (f"{mac(1)},10.9.0.11,worker1\n{mac(2)},10.9.0.12,worker2\n")
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
    assert hosts(server) == f"{mac(2)},10.9.0.12,worker2\n"
    everything = b"".join(path.read_bytes() for path in server.folder.rglob("*") if path.is_file())
    assert b"token-1" not in everything
    assert b"token-2" in everything


def test_its_token_is_gone_also_where_its_bmc_fails(server):
    for number in (1, 3):
        medium(server, number).make(record(number), f"token-{number}")
        machine = FakeMachine(number)
        machine.silent(True)
        with pytest.raises(Exception, match="does not answer"):
            medium(server, number).remove(machine)
    assert served(server) == set()
    assert server.url(NODES["worker3"]) is None
    assert hosts(server) == ""


@pytest.mark.parametrize("number", [1, 3])
def test_one_that_cannot_be_answered_keeps_no_other_from_it(server, number):
    odd = Record(f"worker{number}", run="run1", mode="install", mac="odd")
    with pytest.raises(ImageError, match="not a valid lower-case MAC address"):
        medium(server, number).make(odd, "token-1")
    medium(server, 2).make(record(2), "token-2")
    assert served(server) == {mac(2), f"{mac(2)}.img"}
    assert hosts(server) == f"{mac(2)},10.9.0.12,worker2\n"


def test_the_port_is_the_one_that_the_bmc_reports_where_none_is_declared(server):
    node = WORKERS[0].model_copy(update={"mac": None})
    NetbootMedium(node, server.cluster, server.network, server).make(record(1), "t")
    assert mac(1) in served(server)


@pytest.mark.parametrize("way", sorted(NETBOOT))
def test_a_node_without_an_address_there(server, way):
    node = changed(WORKERS[0], boot=way).model_copy(update={"addresses": ()})
    with pytest.raises(
        InstallError, match=f"worker1 has no address on management, but needs one for `boot: {way}`"
    ) as left:
        NetbootMedium(node, server.cluster, server.network, server).make(record(1), "t")
    assert (
        left.value.hint == "add `addresses: {management: ...}` to its group, or declare `boot: virtual-media`"
    )


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


@pytest.mark.parametrize("nodes", [WORKERS, BY_HTTP, [*WORKERS, *BY_HTTP]])
def test_dnsmasq_takes_its_settings(server, tmp_path, nodes):
    medium(server, 3).make(record(3), "token-3")
    conf = dnsmasq_conf(server.cluster, server.network, server.folder, nodes)
    (tmp_path / "conf").write_text(conf)
    done = subprocess.run(
        ["dnsmasq", "--test", f"--conf-file={tmp_path / 'conf'}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_strangers_get_no_answer(server):
    for nodes in ([*WORKERS, *BY_HTTP], BY_HTTP):
        conf = dnsmasq_conf(server.cluster, server.network, server.folder, nodes).splitlines()
        assert {"dhcp-ignore=tag:!known", "port=0", "bind-interfaces", f"listen-address={HERE}"} <= set(conf)
        assert "dhcp-range=10.9.0.0,static,255.255.255.0" in conf
        assert ("enable-tftp" in conf) is (nodes != BY_HTTP), "TFTP only where it is needed"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (WORKERS, "dnsmasq is missing; `boot: pxe` needs it."),
        (BY_HTTP + WORKERS, "dnsmasq is missing; `boot: http` and `boot: pxe` need it."),
    ],
)
def test_dnsmasq_that_is_missing(server, free_port, monkeypatch, nodes, message):
    monkeypatch.setattr("rackwright.install.dnsmasq.which", lambda name: None)
    server.nodes, server.network = tuple(nodes), make_boot_network(http_port=free_port)
    server.__post_init__()
    with pytest.raises(InstallError) as left, serving(server):
        pass
    assert (left.value.message, left.value.hint) == (message, "apt-get install dnsmasq-base")
    with socket.socket() as again:
        again.bind((HERE, free_port))


def test_each_machine_gets_the_declared_way(agent, monkeypatch):
    monkeypatch.setattr(NetbootServer, "start", lambda self: None)
    cd, pxe, by_http = make_worker(5), WORKERS[0], BY_HTTP[0]
    cluster = make_site(*NODES.values(), cd)
    ways = BootWays(cluster, cluster.boot_network, agent, b"CA")
    cases = [Case(node, Journal("test", node.name), lambda _: {}, None) for node in (pxe, by_http, cd)]
    with ways.serving([pxe, by_http, cd]):
        media = [ways.of(case) for case in cases]
    assert [type(one) for one in media] == [NetbootMedium, NetbootMedium, VirtualMedia]
    assert media[0].server is media[1].server
    assert media[0].server.nodes == (pxe, by_http)
    with BootWays(cluster, cluster.boot_network, agent, b"CA").serving([cd]):
        pass


def test_a_discovery_takes_what_the_bmc_can_do():
    bare = make_worker().model_copy(update={"install": None})
    assert way_of(bare) is BootWay.VIRTUAL_MEDIA
    ipmi = bare.bmc.model_copy(update={"protocol": BmcProtocol.IPMI})
    assert way_of(bare.model_copy(update={"bmc": ipmi})) is BootWay.PXE
    assert way_of(WORKERS[0]) is BootWay.PXE
    assert way_of(BY_HTTP[0]) is BootWay.HTTP


def test_another_dhcp_server_that_answers_them(server, other_dhcp_servers):
    other_dhcp_servers[mac(1)] = other_dhcp_servers[mac(3)] = "10.9.0.7"
    with pytest.raises(InstallError) as error, serving(server):
        pass
    assert error.value.message == "Another DHCP server (10.9.0.7) answers worker[1,3] on management."
    assert error.value.hint == "make it ignore the MACs of these machines, or declare `boot: virtual-media`"
