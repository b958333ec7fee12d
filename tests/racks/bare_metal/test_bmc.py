"""Racked machines and their virtual BMCs: power, boot order, media, Secure Boot, sessions and faults."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackwright.certificates.read import pem
from rackwright.lab import cgroup, links, names, network, racked, vm
from rackwright.lab.bmc import certificates
from rackwright.lab.links import batch, make_namespace
from tests.racks.bare_metal.boot_media import Media, Served, serving
from tests.racks.bare_metal.conftest import BMCS, BRIDGE, Machines, declared
from tests.racks.bare_metal.redfish import CD, CHASSIS, LOG, MANAGER, SESSIONS, SYSTEM, Redfish, wait
from tests.racks.host_state import differences, host_state
from tests.racks.lab.traces import traces
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

SUSHY = """\
import json, sys, time, sushy
address, password, authority, image = sys.argv[1:]
root = sushy.Sushy(f"https://{address}", username="admin", password=password, verify=authority)
system = root.get_system_collection().get_members()[0]
manager = root.get_manager_collection().get_members()[0]
cd = manager.virtual_media.get_members()[0]
cd.insert_media(image, inserted=True, write_protected=True)
cd.refresh()
said = {"inserted": cd.inserted, "serial": system.serial_number, "macs": list(system.ethernet_interfaces.summary)}
cd.eject_media()
system.set_system_boot_options(sushy.BootSource.CD, enabled=sushy.BootSourceOverrideEnabled.ONCE)
system.bios.set_attribute("ProcTurbo", "Disabled")
system.secure_boot.set_enabled(True)
system.reset_system(sushy.ResetType.ON)
system.refresh(); system.bios.refresh(); system.secure_boot.refresh()
said |= {"power": system.power_state.value, "turbo": system.bios.attributes["ProcTurbo"]}
said |= {"secure": system.secure_boot.enabled, "enabled": system.boot.enabled.value}
system.secure_boot.set_enabled(False)
system.reset_system(sushy.ResetType.FORCE_OFF)
chassis = root.get_chassis_collection().get_members()[0]
said["supplies"] = [supply.status.health.value for supply in chassis.power.power_supplies]
said["drives"] = [drive.serial_number for storage in system.storage.get_members() for drive in storage.drives]
print(json.dumps(said))
"""


@pytest.mark.smoke
def test_a_racked_machine_is_off_and_boots_once_from_the_cd_that_its_bmc_fetched(
    machines: Machines, media: Media, served: Served
):
    bmc = machines.bmc()
    status = machines.site.rack.status()
    assert (status.up, [one.state for one in status.nodes]) == (True, ["off", "off"])
    assert bmc.power == "Off"
    image = media.make("restarts", end="reboot")
    assert bmc.insert(f"{served.url}/{image}").status == 204
    stored = racked.medium(machines.name, "machine1")
    assert stored.read_bytes() == (media.served / image).read_bytes()
    assert len(served.asked) == 1
    bmc.boot("Cd", "Once")
    began = time.monotonic()
    bmc.reset("On")
    assert bmc.power == "On"
    serial, uuid = (make(machines.name, "machine1") for make in (names.serial_number, names.machine_uuid))
    machines.wait_for("CD BOOTED [restarts] locked []")
    assert f"SERIAL [{serial}]\n" in machines.console()
    assert f"UUID [{uuid}]\n" in machines.console()
    print(f"the CD's boot loader ran after {time.monotonic() - began:.0f} s")
    boot = bmc.get(SYSTEM)["Boot"]
    assert (boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]) == ("None", "Disabled")
    # It restarts by itself: the machine keeps its power, and the override is used up.
    machines.wait_for("failed to load Boot")
    assert machines.console().count("CD BOOTED") == 1
    assert bmc.power == "On"
    bmc.eject()
    assert not stored.exists()
    assert not [path for path in stored.parent.iterdir() if path.name.startswith((".medium", "medium"))]
    bmc.reset("ForceOff")
    assert bmc.power == "Off"
    wait(lambda: bmc.events()[-1:] == ["System power off"], "the log's last entry")
    assert [event for event in bmc.events() if event in ("System power on", "Virtual CD ejected")] == [
        "System power on",
        "Virtual CD ejected",
    ]


def test_secure_boot_changes_with_the_next_start_and_refuses_an_unsigned_loader(
    machines: Machines, media: Media, served: Served
):
    bmc = machines.bmc("machine2")
    signed, unsigned = media.make("signed", end="halt"), media.make("unsigned", end="halt", signed=False)
    bmc.secure_boot(True)
    reported = bmc.get(f"{SYSTEM}/SecureBoot")
    assert (reported["SecureBootEnable"], reported["SecureBootCurrentBoot"]) == (True, "Disabled")
    bmc.insert(f"{served.url}/{signed}")
    bmc.boot("Cd", "Continuous")
    bmc.reset("On")
    machines.wait_for("CD BOOTED [signed] locked [y]", node="machine2")
    assert bmc.get(f"{SYSTEM}/SecureBoot")["SecureBootCurrentBoot"] == "Enabled"
    wait(lambda: bmc.power == "Off", "the machine to be off once its boot loader has halted it")
    bmc.insert(f"{served.url}/{unsigned}")
    seen = len(machines.console("machine2"))
    bmc.reset("On")
    machines.wait_for("Access Denied", seen, "machine2")
    bmc.secure_boot(False)
    seen = len(machines.console("machine2"))
    bmc.reset("PowerCycle")
    machines.wait_for("CD BOOTED [unsigned] locked []", seen, "machine2")


def test_a_medium_changes_while_the_machine_runs(machines: Machines, media: Media, served: Served):
    bmc = machines.bmc()
    first, second = media.make("first", end="halt"), media.make("second", end="halt")
    bmc.reset("On")
    assert bmc.insert(f"{served.url}/{first}").status == 204
    assert bmc.insert(f"{served.url}/{second}").status == 204
    node = machines.site.rack.running_spec.node("machine1")
    drives = vm.monitor_ask(machines.name, node, "query-block")
    assert isinstance(drives, list)
    (drive,) = (one for one in drives if one["device"] == "cd")
    assert drive["inserted"]["file"] == str(racked.medium(machines.name, "machine1"))
    assert bmc.get(CD)["Image"] == f"{served.url}/{second}"
    bmc.eject()
    reported = bmc.get(CD)
    assert (reported["Inserted"], reported["Image"]) == (False, None)


def test_an_image_over_https_comes_from_a_server_that_the_bmc_trusts(
    machines: Machines, media: Media, tmp_path: Path
):
    key, authority = certificates.new_authority("the server's CA")
    issued = certificates.new_certificate(BRIDGE, "images", key, authority)
    certificates.write_chain(tmp_path / "server.pem", *issued)
    image, bmc = media.make("overtls", end="halt"), machines.bmc()
    with serving(machines.name, BRIDGE, media.served, tmp_path / "server.pem") as server:
        assert bmc.insert(f"{server.url}/{image}").status == 204  # as delivered it verifies nothing
        bmc.done("PATCH", CD, {"VerifyCertificate": True})
        refused = bmc.insert(f"{server.url}/{image}")
        assert refused.status == 400
        assert "the certificate of 10.84.0.1 is not trusted" in refused.message
        assert not racked.medium(machines.name, "machine1").exists()
        assert bmc.get(CD)["Inserted"] is False
        text = {"CertificateString": pem(authority), "CertificateType": "PEM"}
        added = bmc.post(f"{CD}/Certificates", text)
        assert added.status == 201
        assert bmc.insert(f"{server.url}/{image}").status == 204
        bmc.done("DELETE", added.headers["location"])
    for wrong, why in (
        (f"{BRIDGE}/x.iso", "begins with http"),
        ("file:///etc/shadow", "begins with http"),
        ("http://images.example.com/x.iso", "no DNS"),
        (f"http://{BRIDGE}:9/x.iso", "did not deliver it"),
    ):
        refused = bmc.insert(wrong)
        assert (refused.status, why in refused.message) == (400, True), refused
    bmc.done("PATCH", CD, {"VerifyCertificate": False})


def test_sushy_drives_it_unchanged(machines: Machines, media: Media, served: Served):
    pytest.importorskip("sushy")
    bmc = machines.bmc()
    image = f"{served.url}/{media.make('sushy', end='halt')}"
    command = (sys.executable, "-c", SUSHY, bmc.address, bmc.password, str(bmc.authority), image)
    ran = machines.site.tool(*command, name="sushy", inside=True, timeout=300)
    assert ran.status == 0, ran.err
    assert json.loads(ran.out) == {
        "inserted": True,
        "serial": names.serial_number(machines.name, "machine1"),
        "macs": [names.port_mac(machines.name, "machine1", 0).upper()],
        "power": "On",
        "turbo": "Disabled",
        "secure": True,
        "enabled": "Disabled",
        "supplies": ["OK", "OK"],
        "drives": ["machine1-root", "machine1-data0"],
    }


def test_a_wrong_password_and_a_ninth_session_are_refused(machines: Machines):
    bmc = machines.bmc()
    wrong = Redfish(bmc.rack, bmc.address, bmc.authority, "wrong")
    assert wrong.ask("GET", SYSTEM).status == 401
    assert wrong.post(SESSIONS, {"UserName": "admin", "Password": "wrong"}).status == 401
    assert wrong.ask("GET", "/redfish/v1/").status == 200  # the root needs none
    login = {"UserName": "admin", "Password": bmc.password}
    bmc.done("POST", f"{MANAGER}/Actions/Manager.Reset", {"ResetType": "GracefulRestart"})  # ends all others
    opened = [bmc.post(SESSIONS, login) for _ in range(9)]
    assert [one.status for one in opened] == [201] * 8 + [503]
    session = Redfish(
        bmc.rack, bmc.address, bmc.authority, "", headers={"X-Auth-Token": opened[0].headers["x-auth-token"]}
    )
    assert session.get(SYSTEM)["Id"] == "1"
    for one in opened[:8]:
        bmc.done("DELETE", one.headers["location"])
    assert session.ask("GET", SYSTEM).status == 401
    log = (certificates.folder(machines.name) / "server.log").read_text()
    assert bmc.password not in log
    assert opened[0].headers["x-auth-token"] not in log


def test_mistakes_are_redfish_errors(machines: Machines):
    bmc = machines.bmc()
    assert bmc.ask("GET", "/redfish/v1/Systems/2").status == 404
    assert bmc.ask("DELETE", SYSTEM).status == 405
    assert bmc.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "Nmi"}).status == 400
    assert bmc.post(f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "PowerCycle"}).status == 409
    stale = bmc.ask("PATCH", SYSTEM, {"IndicatorLED": "Lit"}, **{"If-Match": '"0"'})
    assert (stale.status, stale.body["error"]["code"]) == (412, "Base.1.18.PreconditionFailed")


def test_faults_of_a_bmc_are_shown_done_and_healed(machines: Machines):
    bmc, other = machines.bmc(), machines.bmc("machine2")
    machines.lab("fault", "bmc:error", "503")
    assert machines.faults() == {"bmc:error": ["503"]}
    reply = bmc.ask("GET", SYSTEM)
    assert (reply.status, reply.headers["retry-after"]) == (503, "5")
    machines.lab("fault", "bmc:hang")
    with pytest.raises(TimeoutError):
        bmc.ask("GET", SYSTEM, timeout=2)
    machines.lab("heal")
    machines.lab("fault", "bmc:password")
    assert bmc.ask("GET", SYSTEM).status == 401
    machines.lab("heal")
    machines.lab("fault", "bmc:slow", "2")
    began = time.monotonic()
    bmc.get(SYSTEM)
    assert 2 <= time.monotonic() - began < 30
    machines.lab("fault", "bmc:certificate")
    with pytest.raises(ssl.SSLCertVerificationError):
        bmc.get(SYSTEM)
    machines.lab("heal")
    machines.lab("fault", "bmc:swap", "machine2")
    assert machines.faults("machine2") == {"bmc:swap": ["machine1"]}
    assert [one.get(SYSTEM)["Name"] for one in (bmc, other)] == ["machine2", "machine1"]
    machines.lab("heal", node="machine2")
    assert [one.get(SYSTEM)["Name"] for one in (bmc, other)] == ["machine1", "machine2"]
    assert (machines.faults(), machines.faults("machine2")) == ({}, {})
    assert "not one of 409" in machines.lab("fault", "bmc:error", "200", expect=1)
    assert bmc.power == "Off"  # heal starts nothing that was off


def test_sensors_the_log_and_a_bmc_that_lies(machines: Machines):
    bmc = machines.bmc()
    machines.lab("fault", "bmc:psu")
    machines.lab("fault", "bmc:fan")
    supplies = bmc.get(f"{CHASSIS}/Power")["PowerSupplies"]
    assert [one["Status"]["Health"] for one in supplies] == ["OK", "Critical"]
    assert bmc.get(f"{CHASSIS}/Thermal")["Fans"][0]["Reading"] == 0
    wait(lambda: {"PSU 2 failed", "Fan 1 failed"} <= set(bmc.events()), "the failures in the log")
    machines.lab("fault", "bmc:sel-full")
    log = bmc.get(LOG)
    assert (log["Status"]["Health"], bmc.get(f"{LOG}/Entries")["Members@odata.count"]) == ("Warning", 256)
    bmc.done("POST", f"{LOG}/Actions/LogService.ClearLog")
    assert bmc.events() == ["Event log cleared"]
    machines.lab("power", "on")
    assert bmc.power == "On"
    machines.lab("fault", "bmc:off-lies")
    assert bmc.power == "Off"
    machines.lab("heal")
    assert bmc.power == "On"
    machines.lab("fault", "kill")
    assert bmc.power == "Off"
    machines.lab("heal")  # it was on before the fault
    assert bmc.power == "On"
    machines.lab("power", "off")
    assert bmc.power == "Off"


def test_a_second_up_leaves_machines_and_installed_keys_and_starts_a_dead_server(machines: Machines):
    known = machines.site.folder / ".lab" / "known_hosts"
    line = "machine1,10.83.0.11 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIInstalled\n"
    known.write_text(line)
    bmc = machines.bmc()
    bmc.reset("On")
    for pid in cgroup.pids(cgroup.group(machines.name, "bmcs.server")):
        os.kill(pid, signal.SIGKILL)
    wait(lambda: not machines.site.rack.status().up, "the rack to be reported as not up")
    assert {one.bmc for one in machines.site.rack.status().nodes} == {"stopped"}
    machines.site.cli("lab", "up", str(machines.site.file))
    assert bmc.power == "On"
    assert known.read_text() == line
    assert machines.site.rack.status().up


def test_no_node_reaches_a_bmc_and_this_host_does_not_either(machines: Machines):
    context = ssl.create_default_context(cafile=str(machines.bmc().authority))
    with (  # a proxy of this host's may accept the connection; the BMC does not answer
        pytest.raises(OSError, match=r"."),
        socket.create_connection((BMCS["machine1"], 443), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=BMCS["machine1"]),
    ):
        pass
    # A stranger on the management network that takes the rack for its router.
    probe = names.namespace(machines.name, "stranger")
    make_namespace(probe)
    rack = names.namespace(machines.name)
    try:
        batch(rack, f"link add stranger type veth peer name eth0 netns {probe}")
        batch(rack, f"link set stranger master {names.BRIDGE} up")
        batch(
            probe,
            "link set eth0 up",
            "address add 10.83.0.99/24 dev eth0",
            "route add default via 10.83.0.1",
        )
        curl = [
            sys.executable,
            "-c",
            f"import socket; socket.create_connection(('{BMCS['machine1']}', 443), 5)",
        ]
        tried = subprocess.run(
            network.inside(probe, curl), capture_output=True, text=True, check=False, timeout=60
        )
        assert tried.returncode != 0
        assert "timed out" in tried.stderr or "No route" in tried.stderr or "unreachable" in tried.stderr
        there = subprocess.run(network.inside(rack, curl), capture_output=True, check=False, timeout=60)
        assert there.returncode == 0  # the same from the rack itself
    finally:
        links.remove_link(machines.name, "stranger")
        subprocess.run(["ip", "netns", "delete", probe], check=True)


def test_the_host_is_as_it_was(tmp_path: Path):
    content = declared()
    content["networks"]["management"] |= {"cidr": "10.85.0.0/24", "gateway": "10.85.0.1"}
    content["networks"]["oob"]["cidr"] = "10.86.0.0/24"
    (group, _) = content["nodes"]
    content["nodes"] = [group]
    group["addresses"], group["bmc"] = {"management": "10.85.0.11"}, {"address": "10.86.0.11"}
    site = Site(tmp_path, "bmcsafe", content)
    before = host_state(site.name)
    with site.booted():
        password = (tmp_path / ".lab" / "bmc_password").read_text().strip()
        bmc = Redfish(site.name, "10.86.0.11", tmp_path / ".lab" / "bmc_ca.pem", password)
        assert bmc.get(MANAGER)["FirmwareVersion"]
        bmc.reset("On")
        during = differences(before, host_state(site.name))
        assert {line.split(" + ")[0] for line in during} <= {"namespaces", "mounts", "processes", "groups"}
        assert any(line.startswith("processes + ") and "qemu" in line for line in during)
    assert traces(site.name) == []
    assert differences(before, host_state(site.name)) == []
