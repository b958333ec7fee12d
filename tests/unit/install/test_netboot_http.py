"""UEFI HTTP boot: files for exactly the machines that are armed, at paths that only they learn."""

from __future__ import annotations

import contextlib
import http.client
import socket
from types import SimpleNamespace

import pytest

from rackwright.bmc.interface import BootTarget
from rackwright.errors import InstallError
from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.dnsmasq import Dnsmasq, dnsmasq_conf
from rackwright.install.netboot import NetbootServer, serving
from tests.factories import make_address
from tests.unit.install.fake_machine import FakeMachine
from tests.unit.install.netboot_site import BY_HTTP, HERE, NODES, WORKERS, hosts, medium, record, served
from tests.unit.install.site import mac, make_boot_network, make_site


@pytest.fixture
def http_server(agent, tmp_path, monkeypatch, free_port):
    """Its HTTP alone, with both machines at this computer's own addresses."""
    monkeypatch.setattr(Dnsmasq, "start", lambda self: None)
    monkeypatch.setattr("rackwright.install.netboot_http._POLL_SECONDS", 0.01)
    (tmp_path / "netboot").mkdir()
    nodes = [
        node.model_copy(update={"addresses": (make_address("management", own),)})
        for node, own in zip(BY_HTTP, (HERE, "127.0.0.2"), strict=True)
    ]
    cluster = make_site(*nodes, network=make_boot_network(http_port=free_port))
    made = NetbootServer(cluster, cluster.boot_network, agent, b"CA", tmp_path / "netboot", tuple(nodes))
    with serving(made):
        yield made


def ask(server, path, method="GET", own=HERE, **headers):
    """Status and body, as a machine with this address gets them."""
    port = server.network.http_port
    with contextlib.closing(
        http.client.HTTPConnection(HERE, port, timeout=5, source_address=(own, 0))
    ) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read() if method == "GET" else answer.headers["Content-Length"]


def folder_of(server, number):
    """Path of a machine's files below the HTTP server."""
    url = server.url(server.cluster.by_name[f"worker{number}"])
    return url.removeprefix(f"http://{HERE}:{server.network.http_port}").removesuffix(f"/{SHIM}")


def test_ways_are_mixed_in_one_dnsmasq(server):
    for number in (1, 3):
        medium(server, number).make(record(number), f"token-{number}")
    assert hosts(server) == (f"{mac(1)},10.9.0.11,worker1\n{mac(3)},10.9.0.13,worker3\n")
    url = server.url(NODES["worker3"])
    assert url.startswith(f"http://{HERE}:8080/")
    assert url.endswith("/shimx64.efi")
    options = (server.folder / "options").read_text()
    assert options == f"tag:http-worker3,tag:http,option:bootfile-name,{url}\n"
    assert served(server) == {mac(1), f"{mac(1)}.img"}, "no file of a machine that boots by HTTP"
    everything = b"".join(path.read_bytes() for path in server.folder.rglob("*") if path.is_file())
    assert b"token-3" not in everything
    medium(server, 3).remove(FakeMachine(3))
    assert (server.folder / "options").read_text() == ""
    assert hosts(server) == f"{mac(1)},10.9.0.11,worker1\n"


def test_the_bmc_is_given_the_url(server):
    assert medium(server, 3).make(record(3), "token-3") == "http"
    machine = FakeMachine(3)
    medium(server, 3).insert(machine, "http")
    assert machine.override.target is BootTarget.HTTP
    assert (machine.override.once, machine.override.http_uri) == (True, server.url(NODES["worker3"]))
    medium(server, 3).remove(machine)
    assert machine.override.target is BootTarget.NONE
    assert server.url(NODES["worker3"]) is None


def test_an_armed_machine_fetches_its_files_by_http(http_server):
    server = http_server
    medium(server, 3).make(record(3), "token-3")
    below = folder_of(server, 3)
    assert len(below) > 32
    for name in (SHIM, GRUB_NET, KERNEL, INITRAMFS):
        assert ask(server, f"{below}/{name}") == (200, name.encode())
    assert ask(server, f"{below}/{SHIM}", "HEAD") == (200, str(len(SHIM)))
    assert ask(server, f"/{below}/{KERNEL}", Range="bytes=4-") == (206, KERNEL[4:].encode())
    status, menu = ask(server, "/grub/grub.cfg")
    assert (status, below.encode() in menu) == (200, False), "a path that the menu does not give away"
    _, own = ask(server, f"{below}/grub.cfg")
    assert b"linux $fw_path/vmlinuz console=ttyS0,115200 quiet rackwright.run=run3\n" in own
    assert b"initrd $fw_path/agent.img $fw_path/site.img\n" in own
    assert b"token-3" not in own, "the kernel's command line"
    assert b"token-3" in ask(server, f"{below}/site.img")[1]


def test_machines_that_are_not_armed_fetch_nothing(http_server):
    server, paths = http_server, ["/", "/grub/grub.cfg", f"/{SHIM}", "/site.img", "/../dnsmasq.conf"]
    for path in paths:
        assert ask(server, path)[0] == 404, path
    medium(server, 3).make(record(3), "token-3")
    medium(server, 4).make(record(4), "token-4")
    below, other = folder_of(server, 3), folder_of(server, 4)
    assert ask(server, f"{other}/site.img", own="127.0.0.2")[0] == 200
    assert ask(server, f"{below}/site.img", own="127.0.0.2")[0] == 404, "files of another machine"
    assert ask(server, f"{below}/site.img", own="127.0.0.3")[0] == 404
    assert ask(server, "/grub/grub.cfg", own="127.0.0.3")[0] == 404
    for path in [
        below,
        f"{below}/",
        f"{below}/../{SHIM}",
        f"{below}x/{SHIM}",
        f"/x/{SHIM}",
        f"{below}/hosts",
    ]:
        assert ask(server, path)[0] == 404, path
    medium(server, 3).remove(FakeMachine(3))
    for path in (f"{below}/{SHIM}", f"{below}/site.img", "/grub/grub.cfg"):
        assert ask(server, path)[0] == 404, path
    assert ask(server, f"{other}/site.img", own="127.0.0.2")[0] == 200


def test_each_arming_has_its_own_path(server):
    medium(server, 3).make(record(3), "token-3")
    first = server.url(NODES["worker3"])
    medium(server, 3).make(record(3), "token-4")
    assert server.url(NODES["worker3"]) != first


def test_the_vendor_class_of_http_boot_is_answered(server):
    conf = dnsmasq_conf(server.cluster, server.network, server.folder, BY_HTTP)
    assert "dhcp-match=set:http,option:client-arch,16\n" in conf
    assert "dhcp-vendorclass=set:httpclient,HTTPClient\n" in conf
    assert "dhcp-option-force=tag:httpclient,option:vendor-class,HTTPClient\n" in conf
    assert f"dhcp-mac=set:http-worker3,{mac(3)}\n" in conf
    assert "dhcp-boot" not in conf


def test_pxe_is_not_offered_to_machines_that_boot_by_http(server):
    conf = dnsmasq_conf(server.cluster, server.network, server.folder, [*WORKERS, *BY_HTTP])
    assert "dhcp-boot=tag:efi,tag:!byhttp,shimx64.efi\n" in conf
    by_http = [line for line in conf.splitlines() if line.startswith("dhcp-mac=set:byhttp,")]
    assert by_http == [f"dhcp-mac=set:byhttp,{mac(number)}" for number in (3, 4)]


def test_dnsmasq_that_has_ended_is_noticed_before_a_machine_is_armed(server):
    server._dnsmasq.log.write_text("dnsmasq: failed\n")
    server._dnsmasq._process = SimpleNamespace(poll=lambda: 5)
    with pytest.raises(InstallError, match=r"dnsmasq exited with code 5: dnsmasq: failed") as left:
        medium(server, 3).make(record(3), "token-3")
    assert left.value.hint == f"see {server._dnsmasq.log}"
    assert server.url(NODES["worker3"]) is None


def test_a_port_that_is_taken(server, free_port):
    with socket.socket() as taken:
        taken.bind((HERE, free_port))
        taken.listen(1)
        server.network = make_boot_network(http_port=free_port)
        with pytest.raises(InstallError) as left, serving(server):
            pass
    assert left.value.message == (
        f"Machines with `boot: http` cannot be served at {HERE}, port {free_port}: Address already in use."
    )
    assert (
        left.value.hint == "if another program uses the port, set another: `boot_network: {http_port: 8081}`"
    )
