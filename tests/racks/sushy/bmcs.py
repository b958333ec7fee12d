"""The BMCs: sushy-tools' Redfish emulator and virtualbmc's IPMI, each in front of the same machine."""

from __future__ import annotations

import configparser
from ipaddress import IPv4Address
from pathlib import Path

import bcrypt

from rackwright.install.authority import credentials_in
from tests.racks.sushy.machine import MICROSOFT_VARIABLES, NAME, SECURE_FIRMWARE, UUID, VARIABLES
from tests.racks.sushy.private_site import BMC, IPMI_BMC, PrivateSite

USER, PASSWORD = "admin", "of the BMC, 20 chars"
CA_FILE = "bmc-ca.pem"
_URI = "qemu:///system"
_REDFISH = """\
SUSHY_EMULATOR_LISTEN_IP = {address!r}
SUSHY_EMULATOR_LISTEN_PORT = 443
SUSHY_EMULATOR_SSL_CERT = {chain!r}
SUSHY_EMULATOR_SSL_KEY = {chain!r}
SUSHY_EMULATOR_AUTH_FILE = {accounts!r}
SUSHY_EMULATOR_LIBVIRT_URI = {uri!r}
SUSHY_EMULATOR_ALLOWED_INSTANCES = [{uuid!r}]
SUSHY_EMULATOR_STATE_DIR = {state!r}
SUSHY_EMULATOR_FEATURE_SET = 'full'
SUSHY_EMULATOR_VMEDIA_VERIFY_SSL = True
SUSHY_EMULATOR_BOOT_LOADER_MAP = {{'UEFI': {{'x86_64': {firmware!r}}}, 'Legacy': {{'x86_64': None}}}}
SUSHY_EMULATOR_SECURE_BOOT_ENABLED_NVRAM = {secure!r}
SUSHY_EMULATOR_SECURE_BOOT_DISABLED_NVRAM = {insecure!r}
"""


def start_redfish(site: PrivateSite, programs: Path, authority: Path) -> None:
    """sushy-tools with its own certificate and user; it verifies image servers and trusts none as delivered."""
    folder = site.folder / "redfish"
    (folder / "state").mkdir(parents=True)
    credentials = credentials_in(folder, frozenset({IPv4Address(BMC)}))
    authority.write_bytes(credentials.ca)
    accounts, settings = folder / "accounts", folder / "emulator.conf"
    accounts.write_text(f"{USER}:{bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n")
    settings.write_text(
        _REDFISH.format(
            address=BMC,
            chain=str(credentials.chain),
            accounts=str(accounts),
            uri=_URI,
            uuid=UUID,
            state=str(folder / "state"),
            firmware=str(SECURE_FIRMWARE),
            secure=str(MICROSOFT_VARIABLES),
            insecure=str(VARIABLES),
        )
    )
    argv = (str(programs / "python"), str(programs / "sushy-emulator"), "--config", str(settings))
    site.begin("redfish", *argv, environment={"TMPDIR": str(folder / "state")})
    site.wait_for_port(BMC, 443, "sushy-tools' emulator")


def start_ipmi(site: PrivateSite, programs: Path) -> None:
    """virtualbmc, as `vbmc add` and `vbmc start` leave its configuration."""
    folder = site.folder / "ipmi"
    (folder / NAME).mkdir(parents=True)
    machine, daemon = configparser.ConfigParser(), configparser.ConfigParser()
    machine["VirtualBMC"] = {
        "username": USER,
        "password": PASSWORD,
        "address": IPMI_BMC,
        "port": "623",
        "domain_name": NAME,
        "libvirt_uri": _URI,
        "active": "True",
    }
    daemon["default"] = {"config_dir": str(folder), "pid_file": str(folder / "pid")}
    for parser, path in ((machine, folder / NAME / "config"), (daemon, folder / "virtualbmc.conf")):
        with path.open("w") as file:
            parser.write(file)
    argv = (str(programs / "python"), str(programs / "vbmcd"), "--foreground")
    site.begin("ipmi", *argv, environment={"VIRTUALBMC_CONFIG": str(folder / "virtualbmc.conf")})
