"""The nvidia_driver role: what a node gets, and the shell that looks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rackwright.lock.for_roles import group_of
from rackwright.model.types import Platform
from rackwright.osfamily.known import RELEASES, os_family, os_release
from rackwright.osfamily.names import names as software
from rackwright.roles.kernel.options import KernelOptions
from rackwright.roles.nvidia_driver import texts
from rackwright.roles.nvidia_driver.options import ModuleOptions, NvidiaDriverOptions, Signing
from rackwright.roles.nvidia_driver.sources import origin, usual_headers
from tests.gpu_repository import DRIVER, REVISION
from tests.unit.roles.driver_sites import FINGERPRINT, KERNEL, KEY, SKU, VERSION, debian
from tests.unit.roles.fake_host import commands, content, planned
from tests.unit.roles.stack_sites import site, worker

ARCHIVE = software(os_family("debian"), "nvidia-archive").paths


def _options(**changes):
    return {"kernel": KernelOptions(), "nvidia_driver": NvidiaDriverOptions(**changes)}


def _mine(cluster, name="gpu1"):
    plan = planned(cluster, cluster.by_name[name])
    assert plan.error is None, plan.error
    return plan, [operation.name for operation in plan.operations if operation.role == "nvidia_driver"]


# --- what a node gets


def test_a_bare_metal_node_from_debian_s_archive(tmp_path):
    cluster = debian(tmp_path, _options())
    plan, names = _mine(cluster)
    assert [name for name in names if not name.startswith("Compare")] == [
        "Pin the driver's dependencies",
        "Write the modules' options and keep nouveau out",
        "Write the list of modules to load at boot",
        "Install the locked driver",
        "Install the Secure Boot tools",
        "Build the driver's modules",
        "Update the initramfs",
        "Load the driver",
    ]
    (kernel,) = commands(plan, "Install the declared kernel and its headers")
    assert f"install linux-headers-{KERNEL}=6.1.176-1 linux-image-{KERNEL}=6.1.176-1" in kernel
    (driver,) = commands(plan, "Install the locked driver")
    assert f"nvidia-open-kernel-dkms={VERSION}-1" in driver
    assert "nvidia-persistenced" not in driver
    for command in (kernel, driver):
        assert "apt-mark hold" in command
        assert "/etc/dkms/no-autoinstall" in command
        subprocess.run(["sh", "-n"], input=command, text=True, check=True, timeout=240)
    (build,) = commands(plan, "Build the driver's modules")
    assert f"for conf in /usr/src/nvidia*-{VERSION}; do" in build
    assert f"for kernel in {KERNEL}; do" in build


def test_the_files_whole(tmp_path):
    plan, _ = _mine(debian(tmp_path, _options()))
    assert content(plan, texts.MODPROBE) == (
        "# Written by rackwright; changes made here are undone.\n"
        "blacklist nouveau\n"
        "options nouveau modeset=0\n"
        "options nvidia-current-open NVreg_RestrictProfilingToAdminUsers=0\n"
    )
    assert content(plan, ARCHIVE["pin"]) == (
        "# Written by rackwright; changes made here are undone.\n"
        "# The locked packages depend on others of the same version, which apt would take from a newer suite.\n"
        "Package: *nvidia* *cuda* libnv*\n"
        f"Pin: version {VERSION}*\n"
        "Pin-Priority: 1001\n"
    )
    assert content(plan, texts.MODULES_LOAD).splitlines()[1:] == ["nvidia", "nvidia-uvm"]
    assert content(plan, ARCHIVE["source"]) is None


def test_a_container_gets_headers_and_modules_and_no_kernel(tmp_path):
    plan, names = _mine(debian(tmp_path, _options(), platform=Platform.CONTAINER))
    assert names[-1] == "Build the driver's modules"
    (kernel,) = commands(plan, "Install the declared kernel and its headers")
    assert f"linux-headers-{KERNEL}=" in kernel
    assert "linux-image" not in kernel


def test_nodes_without_gpus_get_nothing(tmp_path):
    assert _mine(debian(tmp_path, _options()), "cpu1")[1] == []


def test_every_module_option(tmp_path):
    wanted = ModuleOptions(
        profiling_for_all=False,
        stream_memory_operations=True,
        coherent_memory="driver",
        pci_topology_check_override=True,
        uvm_disable_hmm=True,
        registry_dwords={"RmExample": 2},
    )
    signing = Signing(key="/root/mok.key", certificate="/root/mok.der")
    cluster = debian(tmp_path, _options(modules=wanted, signing=signing), modules="proprietary")
    plan, _ = _mine(cluster)
    assert content(plan, texts.MODPROBE).splitlines()[3:] == [
        (
            "options nvidia-current NVreg_RestrictProfilingToAdminUsers=1 NVreg_EnableStreamMemOPs=1 "
            "NVreg_CoherentGPUMemoryMode=driver NVreg_GrdmaPciTopoCheckOverride=1 "
            'NVreg_RegistryDwords="PeerMappingOverride=1;RmExample=2;"'
        ),
        "options nvidia-current-uvm uvm_disable_hmm=1",
    ]
    assert content(plan, texts.DKMS_SIGNING).splitlines()[1:] == [
        "mok_signing_key=/root/mok.key",
        "mok_certificate=/root/mok.der",
    ]


@pytest.mark.parametrize(("os", "has_stream"), [("rocky-9", True), ("rocky-10", False)])
def test_a_module_stream_is_chosen_where_there_are_any(tmp_path, os, has_stream):
    (tmp_path / "key.asc").write_text(KEY)
    options = NvidiaDriverOptions(
        repository="http://mirror.example.com/cuda/", repository_key=Path("key.asc"),
        repository_fingerprint=FINGERPRINT,
    )  # fmt: skip
    cluster = site(tmp_path, {"nvidia_driver": options}, worker("gpu1", 11, SKU, os=os_release(os)))
    plan, names = _mine(cluster)
    assert content(plan, "/etc/pki/rpm-gpg/RPM-GPG-KEY-rackwright-nvidia") == KEY
    assert "baseurl=http://mirror.example.com/cuda/" in content(
        plan, "/etc/yum.repos.d/rackwright-nvidia.repo"
    )
    assert ("Select the module stream of the driver branch" in names) is has_stream


def test_from_a_mirror_of_nvidia_s_repository(tmp_path):
    (tmp_path / "key.asc").write_text(KEY)
    options = NvidiaDriverOptions(
        repository="http://mirror.example.com/cuda/", repository_key=Path("key.asc"),
        repository_fingerprint=FINGERPRINT,
    )  # fmt: skip
    cluster = site(tmp_path, {"kernel": KernelOptions(), "nvidia_driver": options}, worker("gpu1", 11, SKU))
    assert [*options.problems(cluster), *options.lock_problems(cluster)] == []
    plan, _ = _mine(cluster)
    assert content(plan, ARCHIVE["key"]) == KEY
    assert content(plan, ARCHIVE["source"]).splitlines()[1:] == [
        "Types: deb",
        "URIs: http://mirror.example.com/cuda/",
        "Suites: /",
        f"Signed-By: {ARCHIVE['key']}",
    ]
    (driver,) = commands(plan, "Install the locked driver")
    assert f"nvidia-driver-pinning-{DRIVER}={REVISION}" in driver
    assert f"nvidia-open={REVISION}" in driver
    assert "options nvidia NVreg" in content(plan, texts.MODPROBE)


def test_without_a_locked_kernel_the_usual_headers_are_installed(tmp_path):
    gpus = NvidiaDriverOptions(repository="http://mirror.example.com/cuda/", repository_key=Path("key.asc"))
    (tmp_path / "key.asc").write_text(KEY)
    plan, names = _mine(site(tmp_path, {"nvidia_driver": gpus}, worker("gpu1", 11, "dgx-gb200")))
    assert "Install kernel headers" in names
    (headers,) = commands(plan, "Install kernel headers")
    assert "install linux-headers-arm64\n" in headers


# --- the shell that looks


def _sh(script, folder, **files):
    for path, text in files.items():
        if path == "version":
            (folder / path).write_text(text)
        else:
            (folder / path).mkdir(exist_ok=True)
    for path in ("/proc/driver/nvidia/version", "/sys/module/nvidia", "/sys/module/nouveau"):
        script = script.replace(f"{path} ", f"{folder / path.rpartition('/')[2]} ")
    return subprocess.run(
        ["sh", "-c", script.replace("$(uname -r)", KERNEL)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    ).stdout.strip()


LOADED = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n"


@pytest.mark.parametrize(
    ("files", "reboot", "load"),
    [
        ({}, texts.LOADED, ""),
        ({"version": LOADED, "nvidia": ""}, texts.LOADED, "loaded"),
        (
            {"version": LOADED.replace(VERSION, "535.216.03"), "nvidia": ""},
            f"driver 535.216.03 is loaded, locked is {VERSION}",
            "loaded",
        ),
        ({"nouveau": ""}, "nouveau is loaded", "loaded"),
    ],
)
def test_a_driver_that_only_a_reboot_replaces_is_due_and_never_loaded(tmp_path, files, reboot, load):
    group = _group(tmp_path)
    assert _sh(texts.loaded_read(group), tmp_path, **files) == reboot
    assert _sh(texts.load_read(group), tmp_path, **files) == load


def test_a_driver_waits_for_its_kernel(tmp_path):
    group = _group(tmp_path).model_copy(update={"kernel": "6.1.0-99-amd64"})
    assert _sh(texts.loaded_read(group), tmp_path) == texts.LOADED  # that kernel's boot is the role kernel's
    assert _sh(texts.load_read(group), tmp_path) == "loaded"


def _group(folder):
    cluster = debian(folder, _options())
    return group_of(cluster, cluster.by_name["gpu1"])


def test_each_release_has_a_repository_and_headers():
    for os in RELEASES.values():
        assert origin(os).url.startswith("https://developer.download.nvidia.com/compute/cuda/repos/")
        assert len(origin(os).fingerprint) == 40
        assert usual_headers(os, "x86_64")
    assert origin(os_release("ubuntu-24.04"), "aarch64").url.endswith("/ubuntu2404/sbsa/")
    assert usual_headers(os_release("debian-13"), "aarch64") == ("linux-headers-arm64",)
