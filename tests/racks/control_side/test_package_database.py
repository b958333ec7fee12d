"""A package database that an interruption or force has broken: plan and verify find it, apply repairs it."""

from __future__ import annotations

import pytest

from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

REPAIR = "Repair the package database"
_BUILD = """\
mkdir -p /root/{name}/DEBIAN; cd /root
printf '%s\\n' 'Package: {name}' 'Version: 1' 'Architecture: all' 'Maintainer: lab <lab@lab.test>' \
  'Description: of a test' {more} >{name}/DEBIAN/control
printf '%s\\n' '#!/bin/sh' '[ ! -e /run/slowly ] || sleep 600' >{name}/DEBIAN/postinst
chmod 755 {name}/DEBIAN/postinst; dpkg-deb -b {name} {name}.deb >/dev/null
"""


def build(name: str, more: str = "") -> str:
    """Shell that builds a package whose configuration takes ten minutes while /run/slowly is there."""
    return _BUILD.format(name=name, more=more)


def changes(site: Site, node: str) -> list[tuple[str, str | None, str | None, bool]]:
    """What the repair of a node would change."""
    (found,) = [one for one in site.plan(2)["nodes"] if one["node"] == node]
    repair = next(one for one in found["operations"] if one["name"] == REPAIR)
    return [(one["target"], one["before"], one["after"], one["disruptive"]) for one in repair["changes"]]


def verified(site: Site, node: str) -> str:
    """What verify finds of the database of a node: `STATUS evidence`."""
    document = site.cli("verify", str(site.file), "--limit", node, "--json", expect=None).json()
    (found,) = [one for one in document["results"] if one["check"] == "the package database is consistent"]
    return f"{found['status']} {found['evidence']}"


def test_dpkg_killed_while_it_configures_is_finished(site: Site):
    site.on(
        "head1",
        build("half-way")
        + """touch /run/slowly
        (exec dpkg -i half-way.deb) >/dev/null 2>&1 & installing=$!
        for try in $(seq 300); do pgrep -x sleep >/dev/null && break; sleep 0.2; done
        kill -9 $installing; pkill -9 -x sleep; rm /run/slowly
        dpkg-query -W -f '${db:Status-Abbrev}' half-way | grep -q iF""",
    )
    assert verified(site, "head1").startswith("FAIL not installed to the end: half-way (half-configured)")
    assert changes(site, "head1") == [("half-way", "half-configured (iF)", "configured", False)]
    site.apply()
    assert operations(site.plan(0)) == set()
    assert verified(site, "head1").startswith("PASS")
    site.on("head1", "dpkg --purge half-way")


def test_what_dpkg_had_not_merged_when_the_power_was_cut_is_planned_and_repaired(site: Site):
    site.on(
        "head1",
        """python3 - <<'EOF'
database = "/var/lib/dpkg/status"
packages = open(database).read().split("\\n\\n")
(cut,) = [one for one in packages if one.startswith("Package: libonig5\\n")]
open(database, "w").write("\\n\\n".join(one for one in packages if one is not cut))
kept = [line for line in cut.split("\\n") if line.partition(":")[0] in ("Package", "Architecture", "Version", "Multi-Arch")]
open("/var/lib/dpkg/updates/0000", "w").write("\\n".join([*kept, "Status: install reinstreq half-installed", ""]))
EOF""",
    )
    ((target, before, after, disruptive),) = changes(site, "head1")
    assert (target, before, disruptive) == ("libonig5", "iHR", False)
    assert after is not None
    assert site.on("head1", "ls -d /tmp/tmp.* 2>/dev/null || :") == ""
    site.apply()
    assert operations(site.plan(0)) == set()
    assert verified(site, "head1").startswith("PASS")


@pytest.mark.smoke
def test_a_dependency_removed_by_force_comes_back(site: Site):
    site.on("worker1", "dpkg --force-depends --remove libjq1; ! jq --version")
    ((target, before, after, disruptive),) = changes(site, "worker1")
    assert (target, before, disruptive) == ("libjq1", None, False)
    assert after is not None
    assert verified(site, "worker1").startswith("FAIL dependencies that are not installed: jq needs libjq1")
    site.apply()
    assert operations(site.plan(0)) == set()
    assert "jq" in site.on("worker1", "jq --version")


def test_a_package_that_cannot_be_kept_is_named_before_it_is_removed(site: Site):
    site.on("worker1", build("needy", "'Depends: no-such-package'") + "dpkg --force-depends -i needy.deb")
    assert ("needy", "1", None, True) in changes(site, "worker1")
    site.apply()
    assert operations(site.plan(0)) == set()
    assert "needy" not in site.on("worker1", "dpkg-query -W -f '${db:Status-Abbrev}${Package}\\n' | grep ^i")
