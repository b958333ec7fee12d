"""Debian 12: locked, installed, held, built for the locked kernel, proven; drift is found and repaired."""

from __future__ import annotations

import pytest

from rackwright.errors import ExitCode
from tests.racks.dkms.pairs import GOOD, asking_for, checks, good_alone
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]
KERNEL, VERSION = "6.1.0-50-amd64", "535.261.03"
INSTALLED_AND_HELD = "the driver is installed as locked and held"


@pytest.mark.smoke
def test_the_lock_chooses_the_pair_that_builds(both: Site):
    site = asking_for(both, "good", good_alone)
    missing = site.cli("plan", str(site.file), expect=1)
    assert "The lock file" in missing.out + missing.err
    ran = site.cli("lock", str(site.file))
    assert f"driver {VERSION} (open modules)" in ran.out
    assert f"kernel {KERNEL}" in ran.out


def test_apply_installs_holds_and_builds(good: Site):
    status = good.on(GOOD, "dkms status").strip()
    assert status == f"nvidia-current-open/{VERSION}, {KERNEL}, x86_64: installed"
    file = good.on(GOOD, f"modinfo -k {KERNEL} -n nvidia-current-open").strip()
    assert file.startswith(f"/lib/modules/{KERNEL}/updates/dkms/nvidia-current-open.ko")
    assert good.on(GOOD, "uname -r").strip() != KERNEL  # built for the locked kernel, not for the running one
    held = set(good.on(GOOD, "apt-mark showhold").split())
    assert {"nvidia-open-kernel-dkms", "libcuda1", f"linux-headers-{KERNEL}", "nvidia-persistenced"} <= held
    left = good.on(GOOD, "dpkg --audit; ls /etc/dkms/no-autoinstall /usr/sbin/policy-rc.d 2>/dev/null || :")
    assert left == ""


def test_a_second_apply_is_empty(good: Site):
    assert operations(good.plan(0, full=True)) == set()


def test_verify_proves_what_a_container_can_have(good: Site):
    found = checks(good, "nvidia_driver", "persistence")
    said = {name: result.status for name, result in found.items()}
    assert set(said.values()) == {"PASS", "OUT OF SCOPE"}
    assert said["the driver's modules are built for the locked kernel"] == "PASS"
    assert said["modprobe loads the locked driver"] == "PASS"
    assert said[INSTALLED_AND_HELD] == "PASS"
    loaded = found["the loaded driver is the locked one"]
    assert (loaded.status, loaded.evidence) == ("OUT OF SCOPE", "a container cannot load kernel modules")


def test_no_upgrade_moves_it(good: Site):
    newer = good.on(GOOD, "apt-get -qq update; apt-cache madison libnvidia-ml1")
    assert len(newer.splitlines()) > 1, "the archive has one version alone: this proves nothing"
    moves = good.on(GOOD, "apt-get -s dist-upgrade | grep '^Inst' || :")
    assert not [
        line for line in moves.splitlines() if any(word in line for word in ("nvidia", "cuda", "linux-"))
    ]


def test_a_lost_hold_and_another_version_are_found_and_repaired(good: Site):
    good.on(
        GOOD,
        "cd /root; other=$(apt-cache madison libnvidia-ml1 | awk '{print $3}' | grep -vF 535.261.03-1 | head -n 1)\n"
        "apt-get -qq download libnvidia-ml1=$other\n"
        "apt-mark unhold nvidia-smi libnvidia-ml1; dpkg --force-depends -i libnvidia-ml1_*.deb; apt-mark hold libnvidia-ml1",
    )
    ran = good.cli("plan", str(good.file), "--role", "nvidia_driver", expect=2)
    assert f"nvidia-smi ({VERSION}-1, not held -> {VERSION}-1, held)" in ran.out
    assert f", held -> {VERSION}-1, held)" in ran.out
    found = checks(good, "nvidia_driver", expect=ExitCode.CHECK_FAILED)[INSTALLED_AND_HELD]
    assert found.status == "FAIL"
    assert "nvidia-smi is not held" in found.evidence
    assert "libnvidia-ml1 is " in found.evidence
    good.converge()
    assert checks(good, "nvidia_driver")[INSTALLED_AND_HELD].status == "PASS"
