"""Debian 12: locked, installed, held, built for the locked kernel, proven, and found again when somebody drifts."""

from __future__ import annotations

import pytest

from tests.racks.dkms.site import GOOD, Site

pytestmark = pytest.mark.lab
KERNEL, VERSION = "6.1.0-50-amd64", "535.261.03"
# A build takes two minutes on a quiet machine, and this one may not be quiet.
PATIENCE_SECONDS = 3000


def test_the_lock_chooses_the_pair_that_builds(site: Site):
    missing = site.cli("plan", str(site.good), expect=1)
    assert "There is no lock file" in missing.out + missing.err
    ran = site.cli("lock", str(site.good))
    assert f"driver {VERSION} (open modules)" in ran.out
    assert f"kernel {KERNEL}" in ran.out


def test_apply_installs_holds_and_builds(site: Site):
    site.cli("apply", str(site.good), "--limit", GOOD, "--yes", seconds=PATIENCE_SECONDS)
    assert (
        site.on(GOOD, "dkms status").strip() == f"nvidia-current-open/{VERSION}, {KERNEL}, x86_64: installed"
    )
    file = site.on(GOOD, f"modinfo -k {KERNEL} -n nvidia-current-open").strip()
    assert file.startswith(f"/lib/modules/{KERNEL}/updates/dkms/nvidia-current-open.ko")
    assert site.on(GOOD, "uname -r").strip() != KERNEL  # built for the locked kernel, not for the running one
    held = set(site.on(GOOD, "apt-mark showhold").split())
    assert {"nvidia-open-kernel-dkms", "libcuda1", f"linux-headers-{KERNEL}", "nvidia-persistenced"} <= held
    assert (
        site.on(GOOD, "dpkg --audit; ls /etc/dkms/no-autoinstall /usr/sbin/policy-rc.d 2>/dev/null || :")
        == ""
    )


def test_a_second_apply_is_empty(site: Site):
    site.cli("plan", str(site.good), "--limit", GOOD, "--full", expect=0)


def test_verify_proves_what_a_container_can_have(site: Site):
    found = site.checks(site.good, GOOD, ("nvidia_driver", "persistence"))
    said = {name: result["status"] for name, result in found.items()}
    assert set(said.values()) == {"PASS", "OUT OF SCOPE"}
    assert said["the driver's modules are built for the locked kernel"] == "PASS"
    assert said["modprobe would load the locked driver"] == "PASS"
    assert said["the driver is installed as locked and held"] == "PASS"
    assert said["the loaded driver is the locked one"] == "OUT OF SCOPE"
    assert (
        found["the loaded driver is the locked one"]["evidence"] == "a container cannot load kernel modules"
    )


def test_no_upgrade_moves_it(site: Site):
    newer = site.on(GOOD, "apt-get -qq update; apt-cache madison libnvidia-ml1")
    assert len(newer.splitlines()) > 1, "the archive has one version alone: this proves nothing"
    moves = site.on(GOOD, "apt-get -s dist-upgrade | grep '^Inst' || :")
    assert not [
        line for line in moves.splitlines() if any(word in line for word in ("nvidia", "cuda", "linux-"))
    ]


def test_a_lost_hold_and_another_version_are_found_and_repaired(site: Site):
    site.on(
        GOOD,
        "cd /root; other=$(apt-cache madison libnvidia-ml1 | awk '{print $3}' | grep -vF 535.261.03-1 | head -n 1)\n"
        "apt-get -qq download libnvidia-ml1=$other\n"
        "apt-mark unhold nvidia-smi libnvidia-ml1; dpkg --force-depends -i libnvidia-ml1_*.deb; apt-mark hold libnvidia-ml1",
    )
    ran = site.cli("plan", str(site.good), "--limit", GOOD, "--role", "nvidia_driver", expect=2)
    assert f"nvidia-smi ({VERSION}-1, not held -> {VERSION}-1, held)" in ran.out
    assert f", held -> {VERSION}-1, held)" in ran.out
    name = "the driver is installed as locked and held"
    found = site.checks(site.good, GOOD, ("nvidia_driver",), expect=3)[name]
    assert found["status"] == "FAIL"
    assert "nvidia-smi is not held" in found["evidence"]
    assert "libnvidia-ml1 is " in found["evidence"]
    site.cli("apply", str(site.good), "--limit", GOOD, "--role", "nvidia_driver", "--yes")
    site.cli("plan", str(site.good), "--limit", GOOD, "--role", "nvidia_driver", expect=0)
    assert site.checks(site.good, GOOD, ("nvidia_driver",))[name]["status"] == "PASS"
