"""Secure Boot and modules of DKMS: refused until the site's key is enrolled at the serial console, loaded after it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rackwright.firmware.mokutil import read_key
from rackwright.install.states import State
from rackwright.lab import names, qemu, qemu_socket
from tests.racks.bare_metal import ipmi_console
from tests.racks.provisioned import site_module
from tests.racks.provisioned.conftest import Machines

pytestmark = [pytest.mark.lab, pytest.mark.proof]

NODE = "worker2"
ENROL_SECONDS = 2400
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
REFUSED = "Key was rejected by service"


def _without_roles(content: dict[str, Any]) -> None:
    """The machine may have been installed and no more: nothing is declared of what it runs."""
    content["roles"] = {}
    content.pop("burnin", None)
    content["waves"] = {"boot_timeout_seconds": 900}


def _behind_ipmi(content: dict[str, Any]) -> None:
    """The head and the node, whose BMC is another one."""
    head, workers = content["nodes"]
    mac, address = workers["macs"][1], "10.81.0.12"
    left_out = ("install", "macs", "bmc")
    node = {key: value for key, value in workers.items() if key not in left_out}
    node |= {"nodes": NODE, "addresses": {"management": address}, "macs": [mac]}
    content["nodes"] = [head, node | {"bmc": ipmi_console.declaration()}]
    content["defaults"].pop("bmc")
    content.pop("boot_network")


@pytest.fixture(scope="module")
def site(bare: Machines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """The rack with one machine installed; what DKMS has built there is signed with a fresh key of the site."""
    if bare.record(NODE).state is not State.READY:
        bare.install(NODE)
    with bare.declaring(_without_roles):
        site_module.make_key(bare.folder, "site-mok")
        site_module.build(bare, NODE, bare.folder, "site-mok")
        yield bare


@pytest.fixture(scope="module")
def certificate(site: Machines) -> Path:
    return site.folder / "site-mok.der"


def _command(site: Machines, certificate: Path, *options: str) -> tuple[str, ...]:
    words = ("bmc", "enrol-key", str(site.file), "--limit", NODE, "--certificate", str(certificate))
    return (*words, *options)


def test_a_module_that_the_site_signed_loads_once_its_key_is_enrolled(site: Machines, certificate: Path):
    assert "SecureBoot enabled" in site.on(NODE, "mokutil --sb-state")
    assert "site-mok modules" in site.on(NODE, f"modinfo -F signer {site_module.MODULE}")
    assert REFUSED in site_module.load(site, NODE)
    before = site_module.verified(site, NODE)
    assert (before.status.value, "is not enrolled" in before.evidence) == ("FAIL", True), before
    boot = site.on(NODE, BOOT_ID)

    ran = site.cli(*_command(site, certificate, "--confirm", NODE), timeout=ENROL_SECONDS)
    assert f"{NODE}: enrol site-mok.der (SHA-256 {read_key(certificate).sha256})" in ran.out
    assert f"{NODE}: has the key: site-mok.der enrolled" in ran.out

    assert site.on(NODE, BOOT_ID) != boot
    assert "SecureBoot enabled" in site.on(NODE, "mokutil --sb-state")
    assert "secure boot enabled" in site.on(NODE, "dmesg | grep -i 'secure boot enabled'").lower()
    after = site_module.verified(site, NODE)
    assert after.status.value == "PASS", after
    assert site_module.load(site, NODE).endswith("loaded\n")
    unsigned = site_module.load_unsigned(site, NODE)
    assert "loaded" not in unsigned
    assert REFUSED in unsigned or "Operation not permitted" in unsigned, unsigned
    assert not site.on(NODE, "mokutil --list-new").strip()


def test_a_node_that_has_the_key_is_left_alone(site: Machines, certificate: Path):
    boot = site.on(NODE, BOOT_ID)
    ran = site.cli(*_command(site, certificate))
    assert ran.out.splitlines() == [f"{NODE}: has site-mok.der already", "nothing to do"]
    assert site.on(NODE, BOOT_ID) == boot


def test_what_is_not_confirmed_asks_for_nothing(site: Machines):
    _, other = site_module.make_key(site.folder, "unconfirmed")
    boot = site.on(NODE, BOOT_ID)
    assert "nothing was changed" in site.cli(*_command(site, other, "--confirm", "worker1"), expect=1).err
    assert not site.on(NODE, "mokutil --list-new").strip()
    assert site.on(NODE, BOOT_ID) == boot


def test_a_second_key_is_enrolled_over_serial_over_lan(site: Machines):
    """By ipmitool, to a BMC that is not the lab's; the first key stays."""
    _, second = site_module.make_key(site.folder, "second")
    site.cli("secrets", "put", ipmi_console.SECRET, str(site.file), stdin=ipmi_console.PASSWORD)
    line = partial(qemu_socket.console, names.node_state(site.name, NODE) / qemu.SERIAL)
    bmc = ipmi_console.serving(names.namespace(site.name), site.folder / "sol", line)
    with site.declaring(_behind_ipmi), bmc as recording:
        program = (sys.executable, "-m", "rackwright")
        done = site.tool(
            *program,
            *_command(site, second, "--confirm", NODE),
            name="enrol-key-by-sol",
            inside=True,
            timeout=ENROL_SECONDS,
        )
        (site.outputs / "mokmanager.json").write_text(json.dumps(ipmi_console.steps(recording), indent=1))
        assert done.status == 0, done
    assert f"{NODE}: has the key: second.der enrolled" in done.out
    site.send(NODE, site.folder, "second.der", to="/root/keys")
    assert "is already enrolled" in site.on(NODE, "mokutil --test-key /root/keys/second.der || true")
    assert site_module.verified(site, NODE).status.value == "PASS"
