"""The power fails in the middle of a DKMS build; the next apply finishes it, and the kernel it was built for boots.

The tests build on each other, in the order of the file.
"""

from __future__ import annotations

import pytest

from tests.racks.site import Site, operations
from tests.racks.vm_gpu.conftest import BUILD_SECONDS, BUILDER, lock, locked

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_COMPILING = "pgrep -x cc1 >/dev/null && ls /var/lib/dkms/*/*/build/Makefile >/dev/null 2>&1"


def _locked_kernel(site: Site) -> str:
    kernel = locked(site).kernel
    assert kernel is not None
    return kernel


@pytest.mark.smoke
def test_the_lock_names_a_driver_and_the_kernel_it_builds_for(file: Site) -> None:
    said = lock(file)
    assert f"kernel {_locked_kernel(file)}" in said
    assert "driver 535." in said


def test_a_power_cut_in_mid_build_leaves_no_module(builder: Site) -> None:
    site = builder
    assert site.on(BUILDER, "uname -r").strip() != _locked_kernel(site), "its boot would prove nothing"
    assert site.on(BUILDER, "dkms status", 120) == ""
    running = site.start("apply", str(site.file), "--yes")
    site.wait_for_event(running, timeout=3000, event="start", role="nvidia_driver", node=BUILDER)
    site.on(BUILDER, f"for try in $(seq 500); do {_COMPILING} && exit 0; sleep 5; done; exit 1", 3000)
    site.fault(BUILDER, "power-cut")
    ran = running.wait(BUILD_SECONDS)
    assert ran.status in (1, 4), ran
    site.heal(BUILDER)
    assert "installed" not in site.on(BUILDER, "dkms status", 120)


def test_the_next_apply_finishes_the_build(builder: Site) -> None:
    site = builder
    site.cli("apply", str(site.file), "--yes", timeout=BUILD_SECONDS)
    assert site.on(BUILDER, "dkms status", 120).strip().endswith(f"{_locked_kernel(site)}, x86_64: installed")
    assert site.on(BUILDER, "dpkg --audit", 120) == ""
    assert operations(site.plan(0, full=True)) == set()


def test_the_locked_kernel_boots_and_links_the_module(builder: Site) -> None:
    site, kernel = builder, _locked_kernel(builder)
    site.cli("lab", "reboot", BUILDER, "--file", str(site.file))
    assert site.on(BUILDER, "uname -r").strip() == kernel
    file = site.on(BUILDER, f"modinfo -k {kernel} -n nvidia-current-open").strip()
    assert file.startswith(f"/lib/modules/{kernel}/updates/dkms/")
    # The module is linked into the running kernel and looks for its GPU, of which there is none.
    said = site.on(BUILDER, "modprobe nvidia-current-open 2>&1 || :; dmesg | grep NVRM | tail -n 3", 300)
    assert "No such device" in said, said
    assert "NVRM: No NVIDIA GPU found" in said, said
    assert operations(site.plan(2, full=True)) == {(BUILDER, "nvidia_driver", "Load the driver")}
