"""Debian 13: its own driver does not build on its own kernels. Said before; and when forced, said by the compiler."""

from __future__ import annotations

import pytest

from tests.racks.dkms.site import BAD, BAD_KERNEL, Site

pytestmark = pytest.mark.lab
PATIENCE_SECONDS = 3000


def test_the_lock_refuses_it(site: Site):
    ran = site.cli("lock", str(site.both), expect=1)
    assert "lab-gpu on debian-13 from distribution: cannot be had" in ran.out
    assert "nvidia-open-kernel-dkms 550.163.01-2" in ran.out


def test_the_role_refuses_a_lock_that_somebody_wrote_by_hand(site: Site):
    site.lock_by_hand(site.refused)
    ran = site.cli("plan", str(site.refused), expect=1)
    assert f"nvidia-open-kernel-dkms 550.163.01-2 does not build on {BAD_KERNEL}" in ran.out + ran.err


def test_forced_it_fails_in_the_compiler_s_words_and_leaves_dpkg_whole(site: Site):
    site.lock_by_hand(site.forced)
    ran = site.cli("apply", str(site.forced), "--limit", BAD, "--yes", expect=1, seconds=PATIENCE_SECONDS)
    said = ran.out + ran.err
    assert "nvidia-current-open 550.163.01 does not build for 6.12.107+deb13-amd64" in said
    assert "error: too few arguments to function" in said
    assert "pci_resize_resource" in said
    assert site.on(BAD, "dpkg --audit").strip() == ""
    assert (
        site.on(BAD, "dpkg-query -W -f '${db:Status-Abbrev}\\n' | grep -vE '^(ii|hi|rc) ' || :").strip() == ""
    )


def test_what_is_left_to_do_is_the_build_alone(site: Site):
    ran = site.cli("plan", str(site.forced), "--limit", BAD, "--role", "nvidia_driver", expect=2)
    assert "1 change" in ran.out
    assert "DKMS module nvidia-current-open 550.163.01" in ran.out
    found = site.checks(site.forced, BAD, ("nvidia_driver",), expect=3)
    assert found["the driver's modules are built for the locked kernel"]["status"] == "FAIL"
    assert found["no package is left half-way"]["status"] == "PASS"
