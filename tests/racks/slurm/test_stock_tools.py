"""The cluster file under the stock pyinfra program and plain pytest with testinfra."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES

pytestmark = pytest.mark.lab

PROGRAMS = Path(sys.executable).parent


def _pyinfra(rack: Site, *arguments: str) -> str:
    ran = rack.tool(str(PROGRAMS / "pyinfra"), f"@rackwright/{rack.file}", *arguments, name="pyinfra")
    assert ran.status == 0, ran
    return ran.out + ran.err


def _pending(said: str) -> dict[str, str]:
    """Operations of a dry run that would change something, with the number of nodes and their names."""
    rows = re.findall(r"^ +(\w+ \| .+?) {2,}(-|\d+ \(.+?\)) {2,}- *$", said, re.MULTILINE)
    assert len(rows) > 60, said
    return {name: count for name, count in rows if count != "-"}


def test_a_dry_run_of_pyinfra_itself(rack: Site):
    site_py = f"{rack.cli('path', 'deploys').out.strip()}/site.py"
    rack.on("worker2", "echo Europe/Oslo >/etc/timezone")
    said = _pyinfra(rack, site_py, "--dry")
    assert _pending(said) == {"base | Write /etc/timezone": "1 (worker2)"}
    assert "-Europe/Oslo" in said
    rack.converge()


def test_groups_and_data_in_pyinfras_inventory(rack: Site):
    said = _pyinfra(rack, "debug-inventory")
    for node in NODES:
        role, sku = ("head", "lab-node") if node == "head1" else ("worker", "lab-h100-node")
        assert re.search(rf"\[{node}\]\s+--> Groups: {role}, rack_r1, switch_leaf1, sku_{sku}, ", said)
        assert f'"node": "{node}"' in said
    limited = rack.tool(
        str(PROGRAMS / "pyinfra"), f"@rackwright/{rack.file}::worker[1-2]", "debug-inventory", name="pyinfra"
    )
    assert set(re.findall(r"\[(\w+)\]", limited.out + limited.err)) == {"worker1", "worker2"}


def test_the_checks_under_plain_pytest(rack: Site):
    """As in the plugin's docstring, from a place that reaches the nodes."""
    lab = rack.folder / ".lab"
    config = rack.folder / "ssh_config"
    config.write_text(
        f"Host 10.77.0.*\n  User rack\n  IdentityFile {lab}/id_ed25519\n"
        f"  UserKnownHostsFile {lab}/known_hosts\n  StrictHostKeyChecking yes\n"
    )
    command = (
        str(PROGRAMS / "pytest"),
        *("-p", "rackwright.pytest_plugin", "--cluster", str(rack.file)),
        *("--hosts=ssh://10.77.0.10,ssh://10.77.0.12", "--sudo", "--ssh-config", str(config)),
        *("-k", "access or munge or chronyd", "-p", "no:cacheprovider"),
        *("--pyargs", "rackwright.verify.pytest_checks"),
    )
    rack.on("worker2", "chmod 640 /etc/munge/munge.key; systemctl stop chrony")
    ran = rack.tool(*command, name="pytest", inside=True)
    rack.on("worker2", "chmod 400 /etc/munge/munge.key; systemctl start chrony")
    assert ran.status == 1, ran
    assert re.search(r"^=+ 2 failed, [2-9]\d passed, ", ran.out, re.MULTILINE), ran
    failed = re.findall(r"^FAILED .*\[ssh://10\.77\.0\.12-(.+?)\]", ran.out, re.MULTILINE)
    assert set(failed) == {
        "munge: only munge can read the munge key",
        "time: chronyd is running and enabled at boot",
    }
    ran = rack.tool(*command, "-k", "munge and key and read", name="pytest", inside=True)
    assert ran.status == 0, ran
    assert re.search(r"^=+ 2 passed, ", ran.out, re.MULTILINE), ran
