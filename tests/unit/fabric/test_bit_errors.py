"""Bit error rates and the firmware of switches: what is asked, what the tools print, and what is judged."""

from __future__ import annotations

import os
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rackwright.fabric import bit_errors
from rackwright.fabric.compare import Scope, compare
from rackwright.fabric.finding import Finding, Kind
from rackwright.fabric.identify import identify
from rackwright.fabric.infiniband import parse_firmware
from rackwright.fabric.infiniband_nodes import read_fabric, switch_firmware
from rackwright.fabric.sections import Section
from rackwright.model.fabric import NodePort, SwitchId
from rackwright.model.hcas import Hca
from rackwright.status import Status
from tests.unit.fabric.test_compare import FABRIC, HOSTS, INTACT, NAMES

# Recorded: mlxlink -c of MFT 4.24 on a ConnectX-6 HDR port, in a public log of nccl-tests; read 2026-11-25
COUNTERS = """\
Physical Counters and BER Info
------------------------------
Symbol Errors                   : 0
Symbol BER                      : 15E-255
Effective Physical Errors       : 0
Effective Physical BER          : {rate}
Raw Physical Errors Per Lane    : 3183333,242074
Raw Physical BER                : 1E-8
Link Error Recovery Counter     : 0
"""
# The form of infiniband-diags 44, vendstat.c; the figures are made up
GENERAL = """\
hw_dev_rev:  0x00a0
hw_dev_id:   0xd2f0
hw_uptime:   0x0049d4a1
fw_version:  {version}
fw_build_id: 0x0000
fw_date:     05/24/2024
fw_psid:     'MT_0000000543'
fw_ini_ver:  1
sw_version:  00.00.00
"""
SWITCHES = """\
Switch\t: 0xfc6a1c0300a1b2c0 ports 65 "MF0;leaf1:MQM9700/U1" enhanced port 0 lid 3 lmc 0
Switch\t: 0xfc6a1c0300a1b2d0 ports 65 "Quantum Mellanox Technologies" base port 0 lid 14 lmc 0
"""
HCAS = tuple(Hca(f"mlx5_rail{rail}", "fabric", rail, f"0000:{18 + rail}:00.0") for rail in range(3))
WORST = 1e-12
JUDGED = replace(FABRIC, max_ber=WORST)
PORTS = [cable.near for cable in FABRIC.cables if isinstance(cable.near, NodePort)]


def tool(folder: Path, name: str, text: str) -> dict[str, str]:
    """A program in a folder of its own, which is first in the PATH."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def ran(script: str, environment: dict[str, str], root: Path) -> str:
    script = script.replace("/sys/class", f"{root}/class")
    done = subprocess.run(
        ["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_every_card_is_asked_by_its_address(tmp_path: Path) -> None:
    for hca in HCAS:
        (tmp_path / "pci" / str(hca.pci)).mkdir(parents=True)
        (tmp_path / "class/infiniband" / hca.name).mkdir(parents=True)
        (tmp_path / "class/infiniband" / hca.name / "device").symlink_to(tmp_path / "pci" / str(hca.pci))
    good, bad = COUNTERS.format(rate="15E-255"), COUNTERS.format(rate="2E-9")
    environment = tool(
        tmp_path / "bin",
        "mstlink",
        f"#!/bin/sh\ncase $2 in *18:*) cat <<'E'\n{good}E\n;; *19:*) cat <<'E'\n{bad}E\n;; *) echo '-E- no'; exit 1;; esac\n",
    )
    printed = ran(bit_errors.command(HCAS), environment, tmp_path)
    assert bit_errors.parse(printed) == {"mlx5_rail0": 15e-255, "mlx5_rail1": 2e-9}
    assert "ber mlx5_rail2 \n" in printed, "a port that gives no rate is asked, and has none"
    assert ran(bit_errors.command(HCAS), {"PATH": "/nowhere:/usr/bin:/bin"}, tmp_path) == "", "no tool"
    assert bit_errors.command((Hca("rxe_rail0", "fabric", 0),)) == "", "software has no card to ask"


@pytest.mark.parametrize(
    "line", ["ber mlx5_rail0 N/A", "ber mlx5_rail0 ", "ber mlx5_rail0 7", "ber x 1E-9 1E-9", "x" * 10**6]
)
def test_what_is_no_rate_is_not_read(line: str) -> None:
    assert bit_errors.parse(line) == {}
    assert bit_errors.parse(f"{line}\nber mlx5_rail1 \x1b[92m1.5E-13\x1b[0m\n") == {"mlx5_rail1": 1.5e-13}


def judged(rates: dict[NodePort, float], scope: Scope | None = None) -> tuple[Finding, ...]:
    discovery = replace(INTACT, bit_error_rates=rates)
    return compare(JUDGED, identify(JUDGED, discovery, NAMES, HOSTS), scope=scope or Scope())


@pytest.mark.parametrize("seed", range(50))
def test_a_port_above_the_declared_rate_is_found_by_both_ends_and_no_other(seed: int) -> None:
    chance = random.Random(seed)
    rates = dict.fromkeys(PORTS, 15e-255) | dict.fromkeys(chance.sample(PORTS, 20), 1e-13)
    assert judged(rates) == ()
    bad = chance.choice(PORTS)
    [finding] = judged(rates | {bad: 3e-9})
    assert (finding.kind, finding.status) == (Kind.ERRORS, Status.FAIL)
    assert finding.ends == (str(bad), str(FABRIC.by_end[bad].far))
    assert finding.text == (
        f"{bad}, cabled to {FABRIC.by_end[bad].far}, has an effective bit error rate of 3e-09 (at most 1e-12 was declared)."
    )


def test_a_rate_that_was_not_read_is_unknown() -> None:
    [finding] = judged(dict.fromkeys(PORTS[1:], 15e-255))
    assert (finding.status, finding.text) == (
        Status.UNKNOWN,
        f"The bit error rate of {PORTS[0]} could not be read.",
    )
    [several] = judged({})
    assert several.text.endswith(f"and {len(PORTS) - 8} more could not be read.")
    assert judged({}, Scope(no_speed=frozenset(HOSTS))) == (), "virtual machines are out of scope by name"
    undeclared = identify(FABRIC, INTACT, NAMES, HOSTS)
    assert compare(FABRIC, undeclared) == (), "nothing is judged where nothing is declared"


def test_switches_are_asked_for_their_firmware_by_lid(tmp_path: Path) -> None:
    environment = tool(tmp_path / "bin", "ibswitches", f"#!/bin/sh\ncat <<'E'\n{SWITCHES}E\n")
    version = GENERAL.format(version="31.2014.2036")
    tool(
        tmp_path / "bin",
        "vendstat",
        f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n[ "$7$8" != "-N3" ] || cat <<\'E\'\n{version}E\n',
    )
    printed = ran(switch_firmware(" -C mlx5_rail0 -P 1"), environment, tmp_path)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["-C mlx5_rail0 -P 1 -t 500 -N 3", "-C mlx5_rail0 -P 1 -t 500 -N 14"]
    assert parse_firmware(printed) == {"fc6a1c0300a1b2c0": "31.2014.2036"}, "the other one does not answer"
    for junk in ("", "switch fc6a1c0300a1b2c0 \n", "switch x 1.2.3\n", "switch 1 " + "9" * 10**6):
        assert parse_firmware(junk) == {}


def test_firmware_of_a_switch_is_compared_however_it_is_padded() -> None:
    declared = replace(
        FABRIC, switches={**FABRIC.switches, "leaf1": SwitchId("leaf1", firmware="31.2014.0004")}
    )
    [key] = {key for key, device in INTACT.devices.items() if ";leaf1:" in device.description}

    def found(firmware: str | None) -> tuple[Finding, ...]:
        devices = {**INTACT.devices, key: replace(INTACT.devices[key], firmware=firmware)}
        return compare(declared, identify(declared, replace(INTACT, devices=devices), NAMES, HOSTS))

    assert found("31.2014.04") == ()
    [other] = found("31.2012.04")
    assert (other.kind, other.text) == (
        Kind.FIRMWARE,
        "leaf1 has firmware 31.2012.04; 31.2014.0004 was declared.",
    )
    [unread] = found(None)
    assert (unread.status, unread.text) == (
        Status.UNKNOWN,
        "The firmware of leaf1 was not read; 31.2014.0004 was declared.",
    )


def test_without_vendstat_that_is_said() -> None:
    recorded = Path(__file__).parent / "recorded"
    parts = {
        name: Section((recorded / f"{name}.txt").read_text(), 0) for name in ("ibnetdiscover", "iblinkinfo")
    }
    parts["ibqueryerrors"] = Section("", 0)
    assert read_fabric("head1", parts).unread == ()
    missing = read_fabric("head1", {**parts, "vendstat": Section("", 127)})
    assert missing.unread == ("head1: vendstat is missing (package infiniband-diags)",)
    read = read_fabric("head1", {**parts, "vendstat": Section("switch 200000 31.2014.2036\n", 0)})
    assert {one.description: one.firmware for one in read.devices.values() if one.switch} == {
        "leaf1": "31.2014.2036",
        "spine1": None,
    }
