"""A real rack: what a user sees of it."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rackwright.cli.lab import lab_app
from rackwright.errors import LabError
from rackwright.lab.netns import open_socket, rack_is_up
from rackwright.lab.rack import Rack
from tests.bench.measure import node_cpu
from tests.racks.lab.conftest import MakeSpec
from tests.racks.lab.traces import traces

pytestmark = pytest.mark.lab

Ssh = Callable[..., "subprocess.CompletedProcess[str]"]


def test_up_down_and_nothing_is_left(make_spec: MakeSpec):
    spec = make_spec("life", 3)
    assert traces(spec.name) == []
    rack = Rack(spec)
    rack.up()
    spent = node_cpu(spec.name)
    print(f"3 nodes are ready after {spent:.2f} CPU-seconds")
    assert spent < 20
    found = traces(spec.name)
    assert any(line.startswith("process ") for line in found)
    # The nodes' mounts are private: this process sees the namespaces of `ip netns` only.
    assert all("/netns/" in line for line in found if line.startswith("mount "))
    rack.down()
    assert traces(spec.name) == []
    assert not rack_is_up(spec.name)


def test_up_again_leaves_everything_alone(rack: Rack):
    before = [rack.run(f"node{i}", ["cat", "/proc/1/stat"]).split()[21] for i in (1, 2, 3)]
    rack.up()
    assert [rack.run(f"node{i}", ["cat", "/proc/1/stat"]).split()[21] for i in (1, 2, 3)] == before


def test_ssh_is_strict_from_the_first_connection_on(rack: Rack, ssh: Ssh):
    for name in ("node1", "node2", "node3"):
        result = ssh(rack, name, "id -un; hostname")
        assert (result.returncode, result.stdout) == (0, f"ops\n{name}\n"), result.stderr


def test_root_cannot_log_in(rack: Rack, ssh: Ssh):
    result = ssh(rack, "node1", "true", user="root")
    assert result.returncode == 255
    assert "Permission denied (publickey)" in result.stderr


def test_the_administrator_becomes_root_without_password(rack: Rack, ssh: Ssh):
    assert ssh(rack, "node2", "sudo", "-n", "id", "-u").stdout == "0\n"


@pytest.mark.parametrize("name", ["node1", "node2"])
def test_a_node_is_a_healthy_system(rack: Rack, name: str):
    assert rack.run(name, ["systemctl", "is-system-running", "--wait"], timeout=240) == "running\n"
    release = rack.run(name, ["cat", "/etc/os-release"])
    assert ("trixie" if name == "node1" else "bookworm") in release
    assert rack.run(name, ["hostname"]) == f"{name}\n"
    assert rack.run(name, ["cat", "/etc/resolv.conf"]) == ""
    assert rack.run(name, ["sh", "-c", "ls /usr/sbin/policy-rc.d 2>&1 || true"]).endswith(
        "No such file or directory\n"
    )


def test_nodes_have_identities_of_their_own(rack: Rack):
    machine_ids = {rack.run(f"node{i}", ["cat", "/etc/machine-id"]) for i in (1, 2, 3)}
    host_keys = {rack.run(f"node{i}", ["cat", "/etc/ssh/ssh_host_ed25519_key.pub"]) for i in (1, 2, 3)}
    assert len(machine_ids) == len(host_keys) == 3


def test_nodes_reach_each_other_and_themselves(rack: Rack):
    for address in ("10.77.0.12", "10.78.0.12", "10.77.0.11", "127.0.0.1"):
        rack.run("node1", ["ping", "-c", "1", "-W", "2", address])
    rack.run("node1", ["ping", "-c", "1", "-W", "2", "-s", "8972", "-M", "do", "10.77.0.12"])  # mtu 9000


def test_no_packet_can_leave(rack: Rack):
    for where in ("node1", None):
        namespace = f"rw-{rack.name}" + (f".{where}" if where else "")
        routes = subprocess.run(
            ["ip", "-n", namespace, "route", "show", "default"], capture_output=True, text=True, check=False
        )
        assert (routes.returncode, routes.stdout) == (0, "")
        links = json.loads(subprocess.check_output(["ip", "-n", namespace, "-j", "link"]))
        assert all(
            re.fullmatch(r"lo|eth[01]|rack0|net-[0-9a-f]{8}|(v|e1)-node\d", link["ifname"]) for link in links
        )
    with pytest.raises(LabError, match="Network is unreachable"):
        rack.run("node1", ["ping", "-c", "1", "-W", "1", "192.0.2.1"])


def test_apt_works_through_the_mirror(rack: Rack):
    for name in ("node1", "node2"):
        output = rack.run(name, ["apt-get", "update"], timeout=480)
        assert "Err:" not in output
        assert "Reading package lists..." in output
    rack.run("node3", ["sh", "-c", "apt-get -q update && apt-get -qy install hello && hello"], timeout=480)


def test_limits_are_real_or_said_not_to_be(rack: Rack):
    one = rack.status().nodes[0]
    grow = "d = bytearray(1200 << 20); print(len(d))"
    if one.limits == "enforced":
        with pytest.raises(LabError, match="exit code"):
            rack.run("node1", ["systemd-run", "-q", "--wait", "--pipe", "python3", "-c", grow])
        assert rack.run("node1", ["systemctl", "is-active", "ssh"]) == "active\n"
    else:
        assert "not enforced" in one.limits


def test_root_on_a_node_has_no_power_over_the_machine(rack: Rack):
    for command in (["date", "-s", "2001-01-01"], ["sysctl", "-w", "vm.swappiness=1"]):
        with pytest.raises(LabError, match=r"Operation not permitted|permission denied"):
            rack.run("node1", ["env", "LC_ALL=C", *command])
    rack.run("node1", ["sysctl", "-w", "net.ipv4.ip_forward=1"])  # its own network is another matter
    assert rack.run("node1", ["ls", "/sys/class/net"]).split() == ["eth0", "eth1", "lo"]


def test_the_console_is_a_terminal(rack: Rack):
    code = "import os, pty; from rackwright.lab.rack import Rack; import sys\n"
    code += "pid, terminal = pty.fork()\n"
    code += f"if pid == 0: sys.exit(Rack.named({rack.name!r}).console('node2'))\n"
    code += "os.write(terminal, b'tty; hostname; exit 4\\n')\n"
    code += "try:\n  while data := os.read(terminal, 4096): os.write(1, data)\nexcept OSError: pass\n"
    code += "print('code', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False
    )
    assert re.search(r"^/dev/pts/\d+\s+node2\s", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.stdout.endswith("code 4\n")


def test_a_node_reboots(rack: Rack):
    boot = rack.run("node3", ["cat", "/proc/1/stat"]).split()[21]
    rack.run("node3", ["systemctl", "--no-block", "reboot"])
    deadline = time.monotonic() + 1200
    while time.monotonic() < deadline:
        try:
            if rack.run("node3", ["cat", "/proc/1/stat"]).split()[21] != boot and rack.status().up:
                return
        except LabError:
            pass
        time.sleep(0.1)
    pytest.fail("node3 did not come back")


def test_a_node_which_was_shut_down_is_started_by_up(rack: Rack):
    rack.run("node3", ["sh", "-c", "echo kept >/root/data; systemctl --no-block poweroff"])
    deadline = time.monotonic() + 1200
    while rack.status().nodes[2].state != "off":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not rack.status().up
    rack.up()
    assert rack.status().up
    assert rack.run("node3", ["cat", "/root/data"]) == "kept\n"


def test_two_racks_with_the_same_addresses_do_not_meet(rack: Rack, make_spec: MakeSpec, ssh: Ssh):
    twin = Rack(make_spec("twin", 1, apt_proxy="http://10.77.0.1:3142"))
    twin.up()
    for one in (rack, twin):
        one.run("node1", ["sh", "-c", f"echo {one.name} >/tmp/who"])
    assert ssh(rack, "node1", "cat", "/tmp/who").stdout == f"{rack.name}\n"
    assert ssh(twin, "node1", "cat", "/tmp/who").stdout == f"{twin.name}\n"
    with pytest.raises(LabError):
        twin.run("node1", ["ping", "-c", "1", "-W", "1", "10.77.0.12"])
    twin.down()
    assert rack.status().up  # its mirror stayed, too
    rack.run("node1", ["apt-get", "update"], timeout=480)


def test_a_rack_gains_and_loses_nodes_but_does_not_change_them(make_spec: MakeSpec):
    small, large = make_spec("grow", 1), make_spec("grow", 2)
    large = type(large)(**{**_fields(large), "key": small.key, "known_hosts": small.known_hosts})
    Rack(small).up()
    Rack(large).up()
    assert [one.state for one in Rack.named(small.name).status().nodes] == ["ready", "ready"]
    Rack(small).up()
    assert [one.name for one in Rack.named(small.name).status().nodes] == ["node1"]
    assert not [line for line in traces(small.name) if "node2" in line]
    other = type(small)(**{**_fields(small), "ssh_port": 2222})
    with pytest.raises(LabError, match=r"differs from its file: ssh_port"):
        Rack(other).up()
    Rack.named(small.name).down()


def test_another_ssh_port(make_spec: MakeSpec, ssh: Ssh):
    spec = make_spec("port", 1, ssh_port=2222)
    rack = Rack(spec)
    rack.up()
    assert spec.known_hosts.read_text().startswith("[node1]:2222,[10.77.0.11]:2222 ssh-ed25519 ")
    assert ssh(rack, "node1", "hostname").stdout == "node1\n"
    rack.down()


def test_sockets_come_from_inside_the_rack_even_under_gevent(rack: Rack, make_spec: MakeSpec):
    assert open_socket("no-such-rack", "10.77.0.11", 22, 1) is None
    with pytest.raises(OSError, match="refused"):
        open_socket(rack.name, "10.77.0.11", 9, 1)
    code = """
import gevent.monkey; gevent.monkey.patch_all()
import gevent, os, sys
from rackwright.lab.netns import open_socket
home = os.stat("/proc/thread-self/ns/net").st_ino
def banner(node):
    for _ in range(5):
        with open_socket(sys.argv[1], f"10.77.0.1{node}", 22, 5) as s:
            assert s.recv(4) == b"SSH-"
        assert os.stat("/proc/thread-self/ns/net").st_ino == home
jobs = [gevent.spawn(banner, n) for n in (1, 2, 3)]
gevent.joinall(jobs, raise_error=True)
print("fine")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, rack.name], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout == "fine\n", done.stderr


def test_the_commands(rack: Rack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    code = "from rackwright.lab import from_cluster; from rackwright.lab.spec import RackSpec; import json, sys\n"
    code += "spec = RackSpec.from_json(json.load(open(sys.argv.pop(1))))\n"
    code += "from_cluster.load_rack_spec = lambda path: spec\n"
    code += "from rackwright.cli.lab import lab_app; lab_app()"
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(rack.running_spec.to_json()))

    def lab(*argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, str(spec), *argv]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            env={**os.environ, "COLUMNS": "120"},
        )

    assert lab("exec", "node1", "--", "sh", "-c", "hostname; exit 7").returncode == 7
    assert lab("exec", "node1", "--", "hostname").stdout == "node1\n"
    assert lab("ssh", "node1", "--", "id", "-un").stdout == "ops\n"
    assert json.loads(lab("status", "--json").stdout)["nodes"][0]["state"] == "ready"
    table = lab("status").stdout
    assert re.search(r"node1 +10\.77\.0\.11 +debian-13 +container +ready", table)
    assert lab("fault", "node1", "slow", "20", "0").returncode == 0
    assert "slow 20 0" in lab("status").stdout
    assert lab("heal", "node1").stderr == "node1: healed\n"
    assert CliRunner().invoke(lab_app, ["down", "--all", "--name", "x"]).exit_code == 1


def _fields(spec: object) -> dict[str, object]:
    return {name: getattr(spec, name) for name in type(spec).__dataclass_fields__}  # type: ignore[attr-defined]
