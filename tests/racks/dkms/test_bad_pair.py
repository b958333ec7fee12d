"""Debian 13: its own driver does not build on its own kernels. Refused beforehand; forced, the compiler reports it."""

from __future__ import annotations

import pytest

from rackwright.errors import ExitCode
from tests.racks.dkms.conftest import FailedBuild
from tests.racks.dkms.pairs import BAD, BAD_KERNEL, asking_for, bad_alone, checks, lock_by_hand
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]


@pytest.mark.smoke
def test_the_lock_refuses_it(both: Site):
    ran = both.cli("lock", str(both.file), expect=1)
    assert "lab-gpu on debian-13 from distribution: cannot be locked" in ran.out
    assert "nvidia-open-kernel-dkms 550.163.01-2" in ran.out


@pytest.mark.smoke
def test_the_role_refuses_a_lock_that_was_written_by_hand(both: Site):
    site = asking_for(both, "refused", bad_alone)
    lock_by_hand(site)
    ran = site.cli("plan", str(site.file), expect=1)
    assert f"nvidia-open-kernel-dkms 550.163.01-2 does not build on {BAD_KERNEL}" in ran.out + ran.err


def test_forced_it_fails_with_the_compiler_s_message_and_leaves_dpkg_whole(failed_build: FailedBuild):
    said = failed_build.ran.out + failed_build.ran.err
    assert "nvidia-current-open 550.163.01 does not build for 6.12.107+deb13-amd64" in said
    assert "error: too few arguments to function" in said
    assert "pci_resize_resource" in said
    site = failed_build.site
    assert site.on(BAD, "dpkg --audit").strip() == ""
    broken = site.on(BAD, "dpkg-query -W -f '${db:Status-Abbrev}\\n' | grep -vE '^(ii|hi|rc) ' || :")
    assert broken.strip() == ""


def test_what_is_left_to_do_is_the_build_alone(failed_build: FailedBuild):
    site = failed_build.site
    ran = site.cli("plan", str(site.file), "--role", "nvidia_driver", expect=2)
    assert "1 change" in ran.out
    assert "DKMS module nvidia-current-open 550.163.01" in ran.out
    found = checks(site, "nvidia_driver", expect=ExitCode.CHECK_FAILED)
    assert found["the driver's modules are built for the locked kernel"].status == "FAIL"
    assert found["every package is completely installed"].status == "PASS"
