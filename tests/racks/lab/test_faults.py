"""Each fault has the effect it is named after, and heal takes it away."""

import os
import time

import pytest

from rackwright.errors import LabError
from rackwright.lab.netns import open_socket
from rackwright.lab.process import wait_until
from rackwright.lab.rack import Rack

pytestmark = pytest.mark.lab

ADDRESS = "10.77.0.12"


def banner(rack: Rack, timeout: float = 1.0) -> bytes:
    connection = open_socket(rack.name, ADDRESS, 22, timeout)
    assert connection is not None
    with connection:
        return connection.recv(4)


def faults(rack: Rack) -> dict[str, list[str]]:
    return rack.status().nodes[1].faults


@pytest.fixture(autouse=True)
def healed(rack: Rack):
    yield
    rack.heal("node2")
    assert banner(rack, 60) == b"SSH-"
    assert faults(rack) == {}
    wait_until(lambda: rack.status().up, "the rack")


def test_kill_is_a_power_failure(rack: Rack):
    rack.run("node2", ["sh", "-c", "echo kept >/root/data"])
    key = rack.run("node2", ["cat", "/etc/ssh/ssh_host_ed25519_key.pub"])
    rack.fault("node2", "kill")
    assert rack.status().nodes[1].state == "off"
    with pytest.raises(LabError):  # not even its network card answers
        rack.run("node1", ["ping", "-c", "1", "-W", "1", ADDRESS])
    rack.up()
    assert rack.status().nodes[1].state == "off"  # on purpose, so `up` respects it
    rack.heal("node2")
    assert rack.run("node2", ["cat", "/root/data"]) == "kept\n"
    assert rack.run("node2", ["cat", "/etc/ssh/ssh_host_ed25519_key.pub"]) == key


def test_pause_stops_every_process(rack: Rack):
    rack.fault("node2", "pause")
    with pytest.raises(TimeoutError):
        banner(rack)
    assert rack.status().nodes[1].state == "not ready"


def test_cut_takes_the_cable(rack: Rack):
    rack.fault("node2", "cut")
    with pytest.raises(OSError, match=r"timed out|No route to host"):
        banner(rack)
    assert rack.run("node2", ["cat", "/sys/class/net/eth0/carrier"]) == "0\n"


def test_slow_delays_and_loses(rack: Rack):
    rack.fault("node2", "slow", "150", "0")
    started = time.monotonic()
    assert banner(rack, 60) == b"SSH-"
    assert time.monotonic() - started >= 0.15
    # Known before frames get lost: who has the address is asked but once a second, and that may be lost as well.
    rack.run("node1", ["ping", "-c", "1", "-W", "30", ADDRESS])
    rack.fault("node2", "slow", "0", "40")
    ping = rack.run("node1", ["sh", "-c", f"ping -q -c 100 -w 50 -i 0.01 {ADDRESS}"])
    lost = float(ping.split("% packet loss")[0].split()[-1])
    assert 15 < lost < 65  # five standard deviations around 40
    rack.fault("node2", "slow", "0", "0")
    rack.run("node1", ["ping", "-c", "1", "-W", "30", "-s", "8972", "-M", "do", ADDRESS])


def test_fill_disk_leaves_no_room_for_root(rack: Rack):
    free = os.statvfs("/var").f_bavail * os.statvfs("/var").f_frsize
    rack.fault("node2", "fill-disk")
    write = "for d in /root /var/lib /etc /tmp; do echo x >$d/full || head -c 8192 /dev/zero >$d/full; done"
    with pytest.raises(LabError, match="No space left on device"):
        rack.run("node2", ["sh", "-ec", write])
    assert rack.run("node2", ["sh", "-c", "df --output=avail / | tail -1"]).strip() == "0"
    assert free - os.statvfs("/var").f_bavail * os.statvfs("/var").f_frsize < 1 << 30  # this machine's is not
    rack.heal("node2")
    rack.run("node2", ["sh", "-ec", "head -c 1000000 /dev/zero >/root/fits; rm /root/fits"])


def test_sshd_down_refuses_and_exec_still_works(rack: Rack):
    rack.fault("node2", "sshd-down")
    with pytest.raises(ConnectionRefusedError):
        banner(rack)
    assert rack.exec("node2", ["true"]) == 0
    assert rack.exec("node2", ["sh", "-c", "exit 5"]) == 5


def test_faults_add_up_and_one_heal_undoes_all(rack: Rack):
    rack.fault("node2", "sshd-down")
    rack.fault("node2", "fill-disk")
    rack.fault("node2", "slow", "50", "5")
    rack.fault("node2", "cut")
    rack.fault("node2", "pause")
    assert faults(rack) == {"sshd-down": [], "fill-disk": [], "slow": ["50", "5"], "cut": [], "pause": []}
    assert rack.status().up  # every node without a declared fault is ready


def test_a_dead_node_with_other_faults_comes_back_whole(rack: Rack):
    rack.fault("node2", "fill-disk")
    rack.fault("node2", "slow", "50", "5")
    rack.fault("node2", "kill")
    with pytest.raises(LabError, match="node2 is not running"):
        rack.fault("node2", "pause")
    rack.heal("node2")
    rack.run("node2", ["sh", "-ec", "head -c 1000000 /dev/zero >/root/fits; rm /root/fits"])


@pytest.mark.parametrize(
    ("node", "fault", "message"),
    [
        ("node2", ("flood",), "unknown fault 'flood'"),
        ("node2", ("slow", "10"), "fault slow takes 2 arguments, not 1"),
        ("node2", ("slow", "10", "200"), "slow 10 200: a loss of 200 % is not between 0 and 100"),
        ("node2", ("kill", "now"), "fault kill takes 0 arguments, not 1"),
        ("node9", ("kill",), "has no node 'node9'"),
    ],
)
def test_bad_faults_change_nothing(rack: Rack, node: str, fault: tuple[str, ...], message: str):
    with pytest.raises(LabError, match=message):
        rack.fault(node, *fault)
    assert faults(rack) == {}
