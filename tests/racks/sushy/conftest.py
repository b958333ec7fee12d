"""The site up, with both BMCs; an operator's cluster file of it; the image that is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.install import agent_image
from rackwright.install.record import Record, read
from tests.racks.host_state import State, differences
from tests.racks.program import Ran
from tests.racks.site import REPO, Site
from tests.racks.sushy import bmcs, machine
from tests.racks.sushy.private_site import BMC, BMC_CONTROL, CONTROL, IPMI_BMC, MACHINE, PrivateSite
from tests.racks.vagrant.machine_state import machine_state

_BMCS = REPO / ".cache" / "bmcs"
_PROGRAMS = ("libvirtd", "virsh", "qemu-system-x86_64", "qemu-img", "ipmitool", "xorriso", "nsenter")
_DECLARED = f"""\
version: 1
cluster: {{name: "", domain: sushy.test}}
defaults: {{os: debian-13, platform: vm, sku: libvirt-machine, bmc: {{user: {bmcs.USER}, ca: {bmcs.CA_FILE}}}}}
networks:
  management: {{purpose: management, cidr: 10.87.0.0/24}}
  oob: {{purpose: bmc, cidr: 10.88.0.0/24}}
boot_network: {{server: {CONTROL}, bmc_server: {BMC_CONTROL}}}
ssh: {{user: rack, key: id_ed25519, known_hosts: known_hosts, connect_timeout_seconds: 60, time_factor: 10}}
skus:
  libvirt-machine:
    vendor: rackwright
    description: A machine of libvirt's
    sockets: 2
    cores_per_socket: 1
    threads_per_core: 1
    memory_mib: {machine.MEMORY_MIB}
    nics:
      - {{purpose: management, kind: ethernet, speed_gbps: 10}}
    sources:
      - {{text: "By definition: the size that the tests give it", read: 2026-11-27}}
nodes:
  - nodes: {machine.NAME}
    roles: [head]
    addresses: {{management: {MACHINE}}}
    macs: ["{machine.MAC}"]
    bmc: {{address: {BMC}}}
    install: {{image: image, disk: {{serials: [{machine.DISK}]}}}}
roles: {{}}
"""


class Operator(Site):
    """rackwright on the control node: no node of the cluster file is one of the lab's."""

    def __init__(self, folder: Path, private: PrivateSite) -> None:
        self.private = private
        super().__init__(folder, "sushy", yaml.safe_load(_DECLARED))
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id_ed25519")]
        subprocess.run(key, check=True, timeout=60)
        self.password(bmcs.PASSWORD)

    def password(self, text: str) -> None:
        """Have this for the BMCs' password."""
        self.cli("secrets", "put", "bmc_password", str(self.file), stdin=text)

    @contextmanager
    def wrong_password(self) -> Iterator[None]:
        """Another one for a while."""
        self.password("another password")
        try:
            yield
        finally:
            self.password(bmcs.PASSWORD)

    def network_cli(self, *arguments: str, expect: int | None = 0, timeout: float = 1800) -> Ran:
        """Run the program on the site's network; AssertionError on another exit status."""
        command, *rest = arguments
        argv = self.private.on_the_network(
            sys.executable, "-m", "rackwright", command, *rest, "--limit", machine.NAME
        )
        ran = self.tool(*argv, name=command, timeout=timeout)
        assert expect is None or ran.status == expect, (
            f"rackwright {' '.join(arguments)}: wanted {expect}, {ran}"
        )
        return ran

    def bmc(self, command: str, *words: str, expect: int | None = 0) -> Ran:
        """`rackwright bmc COMMAND FILE ...`."""
        return self.network_cli("bmc", command, str(self.file), *words, expect=expect, timeout=300)

    def power(self, action: str, *words: str) -> str:
        """What became of `rackwright bmc power`."""
        result: dict[str, str] = self.bmc("power", action, "--json", *words).json()["nodes"][machine.NAME]
        return next(iter(result.values()))

    def install(self, *options: str, expect: int | None = 0) -> Ran:
        """`rackwright install` of the machine."""
        return self.network_cli("install", str(self.file), "--confirm", machine.NAME, *options, expect=expect)

    def ssh(self, command: str, *, known_hosts: Path | None = None) -> Ran:
        """OpenSSH's own client, which takes no key that is not in known_hosts."""
        known = known_hosts or self.folder / "known_hosts"
        options = (
            "StrictHostKeyChecking=yes",
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=/dev/null",
            "IdentitiesOnly=yes",
            "BatchMode=yes",
            "ConnectTimeout=60",
        )
        argv = ["ssh", "-F", "/dev/null", "-i", str(self.folder / "id_ed25519")]
        argv += [word for option in options for word in ("-o", option)]
        return self.tool(
            *self.private.on_the_network(*argv, f"rack@{MACHINE}", command), name="ssh", timeout=300
        )

    def record(self) -> Record:
        """Where the machine's installation is."""
        with self.here():
            return read(self.name, machine.NAME)


def by_ipmi(content: dict[str, Any]) -> None:
    """The same machine, behind its other BMC."""
    content["nodes"][0]["bmc"] = {"address": IPMI_BMC, "protocol": "ipmi", "cipher_suite": 3}
    del content["nodes"][0]["install"]  # from virtual media


@pytest.fixture(scope="session")
def before() -> State:
    """The machine before anything of the site ran; what is missing makes the tests UNKNOWN."""
    absent = [name for name in _PROGRAMS if shutil.which(name) is None]
    if absent or not (_BMCS / "requirements.txt").exists():
        pytest.skip(
            f"UNKNOWN: not installed: {', '.join([*absent, str(_BMCS)])}: .ci/bootstrap baremetal installs them"
        )
    return machine_state()


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory, before: State) -> Iterator[PrivateSite]:
    """libvirtd with one machine that is off, and both of its BMCs."""
    site = PrivateSite(tmp_path_factory.mktemp("private"))
    try:
        site.start()
        site.connect()
        machine.rack(site)
        bmcs.start_redfish(site, _BMCS / "bin", site.folder / bmcs.CA_FILE)
        bmcs.start_ipmi(site, _BMCS / "bin")
        yield site
    finally:
        site.stop()
        shutil.rmtree(site.folder / "machine", ignore_errors=True)  # a disk of a gigabyte
    assert differences(before, machine_state()) == []


@pytest.fixture(scope="session")
def operator(tmp_path_factory: pytest.TempPathFactory, private: PrivateSite) -> Operator:
    """The cluster file, with the BMC's password and CA."""
    made = Operator(tmp_path_factory.mktemp("sushy"), private)
    shutil.copyfile(private.folder / bmcs.CA_FILE, made.folder / bmcs.CA_FILE)
    return made


@pytest.fixture(scope="session")
def agent() -> None:
    """The image of the agent, built once: the site's network reaches no mirror."""
    agent_image.ensure(print)


@pytest.fixture(scope="session")
def installed(operator: Operator, agent: None) -> tuple[Operator, Ran]:
    """The same with its image built, likewise outside, and `rackwright install` run."""
    build = ("image", "build", str(operator.file), "--group", machine.NAME, "--format", "root")
    operator.cli(*build, "--out", str(operator.folder / "image"))
    return operator, operator.install(expect=None)
