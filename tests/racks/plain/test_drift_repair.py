"""Repair: only of roles that allow it, never where it would disturb."""

from __future__ import annotations

import json

import pytest

from tests.racks.site import Site

pytestmark = pytest.mark.lab


def test_only_roles_that_allow_it_are_repaired(site: Site):
    # base only reports, tuning repairs
    site.on("worker1", "chmod 600 /etc/hosts; chmod 600 /etc/sysctl.d/90-rackwright.conf")
    ran = site.cli("drift", str(site.file), "--repair", "--json", expect=2)
    reported = json.loads(ran.out)
    assert reported["repair"] == {"repaired": {"worker1": 1}, "left": {}}
    operations = [one["role"] for node in reported["nodes"] for one in node["operations"]]
    assert operations == ["base"]
    assert site.on("worker1", "stat -c %a /etc/hosts /etc/sysctl.d/90-rackwright.conf").split() == [
        "600",
        "644",
    ]
    site.on("worker1", "chmod 644 /etc/hosts")
    site.cli("drift", str(site.file), "--repair", expect=0)


def test_what_would_disturb_is_left(site: Site):
    site.on("worker1", "echo '# drift' >>/etc/chrony/chrony.conf")  # repairing it restarts chrony
    ran = site.cli("drift", str(site.file), "--repair", "--json", expect=2)
    reported = json.loads(ran.out)["repair"]
    assert reported["repaired"] == {}
    assert reported["left"]["worker1"].startswith("it would be disruptive (time: Start chronyd")
    assert site.on("worker1", "tail -n 1 /etc/chrony/chrony.conf") == "# drift\n"
    site.converge()


def test_the_read_only_user_repairs_nothing(site: Site):
    other = site.folder / "other.yaml"
    other.write_text(site.file.read_text().replace("user: rack", "user: rackwright-drift"))
    ran = site.cli("drift", str(other), "--repair", expect=1)
    assert "may only check nodes for drift; it cannot repair anything" in ran.err
