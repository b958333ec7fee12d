"""The kernel role: what a node gets by family, CPU and platform, and the shell that looks."""

from __future__ import annotations

import os
import subprocess

import pytest

from rackwright.catalog.read import catalogue
from rackwright.model.types import Platform
from rackwright.osfamily.known import os_family, os_release
from rackwright.roles.kernel import arguments, bridges, modules, texts
from rackwright.roles.kernel.options import KernelOptions, Modules
from tests.unit.roles.driver_sites import KERNEL, SKU, debian
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.stack_sites import STACK, site, worker

GRUB = "/etc/default/grub.d/90-rackwright-kernel.cfg"
EVERYTHING = KernelOptions(
    iommu="leave",
    acs="leave",
    hugepages={"2M": 1024, "1G": 16},
    mitigations="auto,nosmt",
    arguments={"nosoftlockup": True, "isolcpus": "1-3,5"},
    remove=("quiet", "splash"),
    modules=Modules(load=("ib_umad",), options={"nvme_core": {"multipath": "N"}}, blacklist=("usb-storage",)),
)


def made(folder, *nodes, locked=False, **options):
    given = KernelOptions(**options)
    return site(folder, {"kernel": given}, *nodes or (worker("gpu1", 11, "dgx-h100"),), locked=locked)


def of(folder, options, *, os="debian-13", sku="cpu-16c-64g", **changes):
    cluster = site(
        folder, {"kernel": options}, worker("n1", 11, sku, os=os_release(os), **changes), locked=False
    )
    plan = planned(cluster, cluster.by_name["n1"])
    assert plan.error is None, plan.error
    return plan


def names(plan):
    return [one.name for one in plan.operations if one.role == "kernel"]


def sh(script, **changes):
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=240, check=False, **changes
    )
    return done.stdout.strip()


# --- the kernel


def test_the_locked_kernel_is_installed_held_and_boots(tmp_path):
    cluster = debian(tmp_path, {"kernel": KernelOptions(iommu="leave")})
    plan = planned(cluster, cluster.by_name["gpu1"])
    (install,) = commands(plan, "Install the declared kernel and its headers")
    assert f"install linux-headers-{KERNEL}=6.1.176-1 linux-image-{KERNEL}=6.1.176-1" in install
    assert "apt-mark hold" in install
    assert commands(plan, "Set the declared kernel for the next boot") == ("update-grub",)
    for distributor, entry in (("Debian", "Debian GNU/Linux"), ("Ubuntu", "Ubuntu")):
        script = f'GRUB_DISTRIBUTOR={distributor}\n{content(plan, GRUB)}echo "$GRUB_DEFAULT"'
        assert sh(script) == f"{entry}, with Linux {KERNEL}"
    assert "Install the declared kernel and its headers" not in names(
        planned(cluster, cluster.by_name["cpu1"])
    )


def test_a_container_gets_headers_and_no_more(tmp_path):
    cluster = debian(tmp_path, {"kernel": EVERYTHING}, platform=Platform.CONTAINER)
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert names(plan) == ["Install the declared kernel and its headers"]
    (install,) = commands(plan, "Install the declared kernel and its headers")
    assert f"linux-headers-{KERNEL}=" in install
    assert "linux-image" not in install


@pytest.mark.parametrize(
    ("os", "options", "wanted"),
    [
        ("debian-13", {"release": "6.12.117+deb13-amd64"},
         "linux-headers-6.12.117+deb13-amd64=6.12.117-1 linux-image-6.12.117+deb13-amd64=6.12.117-1"),
        ("ubuntu-24.04", {"release": "6.8.0-1-generic", "version": "6.8.0-1.1", "packages": ("linux-modules-extra-6.8.0-1-generic",)},
         ("linux-headers-6.8.0-1-generic=6.8.0-1.1 linux-image-6.8.0-1-generic=6.8.0-1.1 "
          "linux-modules-6.8.0-1-generic=6.8.0-1.1 linux-modules-extra-6.8.0-1-generic=6.8.0-1.1")),
        ("rocky-9", {"release": "5.14.0-570.12.1.el9_6"},
         "kernel-5.14.0-570.12.1.el9_6 kernel-devel-matched-5.14.0-570.12.1.el9_6"),
    ],
)  # fmt: skip
def test_a_declared_kernel_without_a_lock(tmp_path, os, options, wanted):
    given = KernelOptions(**options)
    plan = of(tmp_path, given, os=os)
    (install,) = commands(plan, "Install the declared kernel and its headers")
    assert set(wanted.split()) <= set(install.split())
    node = worker("n1", 11, "cpu-16c-64g", os=os_release(os))
    assert len(given.held_packages(node)) == len(wanted.split())


def test_el_with_pages_of_64k(tmp_path):
    given = KernelOptions(release="5.14.0-570.12.1.el9_6", page_size="64k")
    plan = of(tmp_path, given, os="rocky-9", sku="dgx-gb200")
    (install,) = commands(plan, "Install the declared kernel and its headers")
    assert {"kernel-64k-5.14.0-570.12.1.el9_6", "kernel-64k-devel-matched-5.14.0-570.12.1.el9_6"} <= set(
        install.split()
    )
    (boot,) = commands(plan, "Set the declared kernel for the next boot")
    assert "grubby --set-default /boot/vmlinuz-5.14.0-570.12.1.el9_6.aarch64+64k" in boot


# --- the command line


@pytest.mark.parametrize(
    ("sku", "declared"),
    [
        ("dgx-h100", ("intel_iommu=on", "iommu=pt")),
        ("dgx-a100", ("iommu=pt",)),
        ("dgx-gb200", ("iommu.passthrough=1",)),
        ("cpu-16c-64g", ()),
    ],
)
def test_the_iommu_passes_through_by_cpu_and_where_there_are_gpus(sku, declared):
    assert arguments.declared(worker("x", 11, sku), KernelOptions()) == declared
    assert arguments.declared(worker("x", 11, sku), KernelOptions(iommu="leave")) == ()
    guest = worker("x", 11, sku, platform=Platform.VM)
    assert arguments.declared(guest, KernelOptions(iommu="passthrough")) == ()
    assert "dgx-a100" in catalogue()


def test_the_file_of_grub_s_settings(tmp_path):
    plan = of(tmp_path, EVERYTHING)
    text = content(plan, GRUB)
    assert text.startswith(
        "# Written by rackwright; changes made here are undone. Takes effect with update-grub"
    )
    before = 'GRUB_CMDLINE_LINUX="console=ttyS0 quiet"\nGRUB_CMDLINE_LINUX_DEFAULT="quiet splash=1 noquiet"\n'
    after = sh(f'set -e\n{before}{text}echo "$GRUB_CMDLINE_LINUX|$GRUB_CMDLINE_LINUX_DEFAULT"')
    assert after == (
        "console=ttyS0|noquiet hugepagesz=1G hugepages=16 mitigations=auto,nosmt nosoftlockup isolcpus=1-3,5"
    )
    assert commands(plan, "Set the kernel arguments for the next boot") == ("update-grub",)
    for old in ("90-rackwright-gpudirect.cfg", "rackwright-kernel.cfg"):
        assert f"/etc/default/grub.d/{old}" in texts.earlier("/etc/default/grub.d")


def test_nothing_declared_leaves_the_boot_loader_alone(tmp_path):
    plan = of(tmp_path, KernelOptions())
    (take_out,) = commands(plan, "Remove rackwright's settings from the GRUB menu")
    folder = tmp_path / "grub.d"
    folder.mkdir()
    script = take_out.replace("/etc/default/grub.d", str(folder)).replace("update-grub", "false")
    (folder / "90-rackwright-kernel.cfg").write_text("old")
    (folder / "90-rackwright-gpudirect.cfg").write_text("old")
    assert subprocess.run(["sh", "-c", script], check=False).returncode != 0
    assert [path.name for path in folder.iterdir()] == ["90-rackwright-kernel.cfg"], "tried again next time"
    sh(script.replace("false", "true"))
    assert list(folder.iterdir()) == []


LINE = "BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro quiet isolcpus=1 isolcpus=1-3,5 iommu=pt"


@pytest.mark.parametrize(
    ("declared", "remove", "printed"),
    [
        (("isolcpus=1-3,5", "iommu=pt"), (), "isolcpus=1-3,5 iommu=pt"),
        (("isolcpus=1",), (), arguments.NONE),
        (("pt",), (), arguments.NONE),
        (("iommu=pt", "nosmt"), ("quiet",), "iommu=pt unwanted: quiet"),
        ((), ("splash",), arguments.NONE),
        ((), ("isolcpus",), "unwanted: isolcpus=1-3,5"),
    ],
)
def test_the_last_of_a_name_counts(declared, remove, printed):
    assert sh(arguments.read(f"echo '{LINE}'", declared, remove)) == printed
    missing, unwanted = arguments.differences(LINE, declared, remove)
    assert (not missing and not unwanted) is (printed == arguments.wanted(declared))


def test_an_unreadable_command_line_is_no_answer():
    for source in ("false", "true"):
        assert sh(arguments.read(source, (), ())) == ""


def test_debian_s_menu_is_read_and_an_older_one_is_written_anew(tmp_path):
    family = os_family("debian")
    menu, settings = tmp_path / "grub.cfg", tmp_path / "90-rackwright-kernel.cfg"

    def here(text):
        return text.replace("/boot/grub/grub.cfg", str(menu)).replace(GRUB, str(settings))

    menu.write_text("set linux_gfx_mode=keep\nmenuentry x {\n\tlinux\t/vmlinuz root=/dev/sda quiet\n}\n")
    assert sh(here(family.next_arguments)) == "/vmlinuz root=/dev/sda quiet"
    left = here(family.arguments_left(()))
    assert sh(left) == ""
    settings.write_text("x")
    os.utime(menu, (1, 1))
    assert sh(left) == "left: an older menu"
    os.utime(settings, (0, 0))
    assert sh(left) == ""


def test_el_takes_out_what_it_added_and_is_no_longer_declared(tmp_path):
    family, record, log = os_family("el"), tmp_path / "arguments", tmp_path / "log"
    tool = tmp_path / "grubby"
    tool.write_text(f'#!/bin/sh\nfor one in "$@"; do echo "$one"; done >>{log}\n')
    tool.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def put(declared, remove=()):
        log.write_text("")
        script = family.put_arguments(declared, remove).replace(
            "/var/lib/rackwright/kernel-arguments", str(record)
        )
        sh(script, env=path)
        return log.read_text().splitlines()

    def left(declared):
        return sh(
            family.arguments_left(declared).replace("/var/lib/rackwright/kernel-arguments", str(record))
        )

    assert left(()) == ""
    assert put(("iommu=pt", "nosmt"), ("quiet",)) == [
        "--update-kernel=ALL", "--remove-args=quiet ", "--args=iommu=pt nosmt",
    ]  # fmt: skip
    assert left(("iommu=pt", "nosmt")) == ""
    assert left(("iommu=pt",)) == "left: nosmt"
    assert put(("iommu=pt",)) == ["--update-kernel=ALL", "--remove-args= nosmt ", "--args=iommu=pt"]
    assert put(()) == ["--update-kernel=ALL", "--remove-args= iommu=pt "]
    assert left(()) == ""
    assert put(()) == []


# --- huge pages, modules


def test_huge_pages_and_modules(tmp_path):
    plan = of(tmp_path, EVERYTHING)
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    assert content(plan, texts.TMPFILES).splitlines()[1:] == [f"w- {path} - - - - 1024"]
    assert commands(plan, "Reserve pages of hugepages-2048kB") == (f"echo 1024 >{path}",)
    assert content(plan, texts.MODULES_LOAD).splitlines()[1:] == ["ib_umad"]
    assert commands(plan, "Load ib_umad") == ("modprobe ib_umad",)
    assert content(plan, texts.MODPROBE).splitlines()[1:] == [
        "options nvme_core multipath=N",
        "blacklist usb-storage",
        "install usb-storage /bin/false",
    ]
    assert commands(plan, "Update the initramfs") == ("update-initramfs -u -k $(uname -r)",)
    assert names(plan).index("Write the modprobe settings") < names(plan).index("Update the initramfs")


def test_modprobe_s_settings_go_with_the_initramfs_that_has_them(tmp_path):
    plan = of(tmp_path, KernelOptions())
    (command,) = commands(plan, "Remove the module settings from modprobe and the initramfs")
    assert command == (f": >{texts.MODPROBE} && update-initramfs -u -k $(uname -r) && rm -f {texts.MODPROBE}")


@pytest.mark.parametrize(
    ("declared", "there", "printed"),
    [
        ("N", "N\n", "as declared"),
        ("n", "N\n", "as declared"),
        ("0", "N\n", "as declared"),
        ("1", "Y\n", "as declared"),
        ("0x10", "16\n", "as declared"),
        ("16", "8\n", "multipath=8"),
        ("Y", "N\n", "multipath=N"),
        ("N", None, "as declared"),
    ],
)
def test_parameters_of_a_loaded_module(tmp_path, declared, there, printed):
    folder = tmp_path / "nvme_core" / "parameters"
    folder.mkdir(parents=True)
    if there is not None:
        (folder / "multipath").write_text(there)
        assert modules.same(declared, there.strip()) is (printed == "as declared")
    script = modules.parameters_read("nvme-core", {"multipath": declared})
    assert sh(script.replace("/sys/module", str(tmp_path))) == printed


def test_a_module_in_the_kernel_counts_as_loaded(tmp_path):
    (tmp_path / "modules.builtin").write_text("kernel/drivers/x/ib-umad.ko\n")
    script = modules.loaded_read("ib_umad").replace("/lib/modules/$(uname -r)", str(tmp_path))
    assert sh(script.replace("/sys/module", str(tmp_path))) == "loaded"
    assert sh(script.replace("/sys/module", str(tmp_path)).replace("umad", "uverbs")) == ""
    (tmp_path / "ib_uverbs").mkdir()
    assert sh(script.replace("/sys/module", str(tmp_path)).replace("umad", "uverbs")) == "loaded"


# --- ACS


def test_acs_by_sku_and_option():
    def off(sku, **options):
        return KernelOptions(**options).turns_acs_off(worker("x", 11, sku))

    assert off("dgx-h100")
    assert not off("dgx-h100", acs="leave")
    assert not off("hgx-b300")
    assert off("hgx-b300", acs="off")
    assert not off("dgx-gb300")
    assert not off("cpu-16c-64g")
    assert not off("mi300x-8x")


def test_acs_has_a_unit_on_bare_metal_alone(tmp_path):
    plan = of(tmp_path, KernelOptions(), sku="dgx-h100")
    assert "ExecStart=/usr/local/sbin/rackwright-acs-off\n" in content(
        plan, "/etc/systemd/system/rackwright-acs-off.service"
    )
    assert "Disable ACS now and at boot" not in names(
        of(tmp_path, KernelOptions(), sku="dgx-h100", platform=Platform.VM)
    )


def test_acs_is_cleared_where_it_is_on(tmp_path):
    """The program, against a setpci that keeps its registers in files."""
    cluster = made(tmp_path)
    script = content(planned(cluster, cluster.by_name["gpu1"]), "/usr/local/sbin/rackwright-acs-off")
    tools = tmp_path / "bin"
    tools.mkdir()
    lines = "\n".join(f"0000:0{n}:00.0 0604: 8086:2030" for n in range(4)) + "\n0000:04:00.0 0302: 10de:2330"
    (tools / "lspci").write_text(f"#!/bin/sh\ncat <<'X'\n{lines}\nX\n")
    (tools / "setpci").write_text(
        f"#!/bin/sh\nf={tmp_path}/$2\ncase $3 in\n"
        'ECAP_ACS+6.w=0000) [ -e "$f.stuck" ] || echo 0000 >"$f" ;;\n'
        '*) [ -e "$f" ] || { echo "setpci: $2: Instance #0 of Extended Capability 000d not found - there are no '
        'capabilities with that id." >&2; exit 1; }; cat "$f" ;;\nesac\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / "0000:00:00.0").write_text("001d\n")
    (tmp_path / "0000:01:00.0").write_text("0000\n")

    def run(text):
        path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", text], capture_output=True, text=True, timeout=240, check=False, env=path
        )

    assert bridges.parse(run(bridges.READ).stdout).redirecting == {"0000:00:00.0": "001d"}
    assert run(script).returncode == 0
    assert bridges.parse(run(bridges.READ).stdout) == bridges.Bridges(4, {})
    (tmp_path / "0000:01:00.0").write_text("001d\n")
    (tmp_path / "0000:01:00.0.stuck").touch()
    done = run(script)
    assert (done.returncode, done.stderr) == (1, "0000:01:00.0 keeps its ACS bits, 001d\n")


# --- what is refused


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({"arguments": {"iommu": "pt"}}, "`iommu` has a separate option."),
        ({"remove": ["mitigations"]}, "`mitigations` has a separate option."),
        ({"arguments": {"root": "/dev/sda"}}, "`root` is set by the boot loader: the wrong value keeps the node from booting."),
        ({"arguments": {"a": 1}, "remove": ["a"]}, "`a` is declared under `arguments`."),
        ({"modules": {"load": ["ib_umad"], "blacklist": ["ib-umad"]}}, "ib-umad is listed under `load` too."),
    ],
)  # fmt: skip
def test_contradictions(given, printed):
    assert errors_in(KernelOptions, given) == [printed]


@pytest.mark.parametrize("value", ["a b", 'a"b', "a'b", "a;b", "$(x)", "a\\b", "`x`", "a&b", ""])
def test_no_value_is_read_by_a_shell(value):
    assert errors_in(KernelOptions, {"arguments": {"x": value}})


@pytest.mark.parametrize(
    ("os", "sku", "options", "path", "message"),
    [
        ("debian-13", "cpu-16c-64g", {"page_size": "64k"}, "page_size", "n1 is an x86_64: only Arm kernels have pages of 64 KiB."),
        ("rocky-9", "cpu-16c-64g", {"release": "6.8.0-139-generic"}, "release",
         "6.8.0-139-generic is not a kernel release of rocky-9, which n1 runs."),
        ("ubuntu-24.04", "dgx-gb200", {"release": "6.8.0-139-generic", "page_size": "64k", "version": "1"}, "release",
         "6.8.0-139-generic is not a kernel release of ubuntu-24.04 with pages of 64 KiB, which n1 runs."),
        ("ubuntu-24.04", "cpu-16c-64g", {"release": "6.8.0-1-generic"}, "version",
         "The version of the packages of 6.8.0-1-generic on ubuntu-24.04 is not known."),
        ("debian-13", "cpu-16c-64g", {"version": "6.1-1"}, "release",
         "`version` and `packages` are those of a release, and none is declared."),
        ("debian-13", "cpu-16c-64g", {"hugepages": {"512M": 1}}, "hugepages",
         "512M is not a huge page of an x86_64 kernel: 2M, 1G."),
        ("debian-13", "dgx-gb200", {"hugepages": {"32M": 1, "1G": 1}}, "hugepages",
         "Only one of 32M, 1G can be on the command line."),
        ("debian-13", "cpu-16c-64g", {"hugepages": {"1G": 63}}, "hugepages",
         "They take 64512 MiB of the 65536 MiB of n1: more than 90 %."),
    ],
)  # fmt: skip
def test_what_the_node_cannot_have(tmp_path, os, sku, options, path, message):
    given = KernelOptions(**options)
    cluster = site(tmp_path, {"kernel": given}, worker("n1", 11, sku, os=os_release(os)), locked=False)
    assert [(where, printed) for where, printed, _ in given.problems(cluster)] == [(path, message)]


def test_another_kernel_than_the_lock_s_is_refused(tmp_path):
    def refused(**options):
        given = KernelOptions(**options)
        cluster = debian(tmp_path, {"kernel": given})
        return list(given.lock_problems(cluster))

    assert refused() == []
    assert refused(release=KERNEL) == []
    assert refused(release="6.1.0-56-amd64") == [
        (
            "release",
            f"The lock has the kernel {KERNEL} for gpu1, not 6.1.0-56-amd64.",
            "set `gpu_stack.kernel`, then run: rackwright lock demo.yaml",
        )
    ]


def test_without_mitigations_and_with_little_memory_left_there_is_a_warning(tmp_path):
    given = KernelOptions(mitigations="off", hugepages={"1G": 40})
    cluster = site(tmp_path, {"kernel": given}, worker("n1", 11, "cpu-16c-64g"), locked=False)
    assert [(path, message) for path, message, _ in given.warnings(cluster)] == [
        (
            "mitigations",
            "Without mitigations a user's process can read the memory of the kernel and of other users.",
        ),
        ("hugepages", "Huge pages take more than half of the memory: 40960 of 65536 MiB of n1."),
    ]
    assert list(KernelOptions().warnings(cluster)) == []


def test_the_lock_of_an_el_node(tmp_path):
    stack = STACK.model_copy(update={"kernel": "5.14.0-570.12.1.el9_6"})
    node = worker("gpu1", 11, SKU, os=os_release("rocky-9"))
    cluster = site(tmp_path, {"kernel": KernelOptions(iommu="leave")}, node, gpu_stack=stack)
    plan = planned(cluster, cluster.by_name["gpu1"])
    (install,) = commands(plan, "Install the declared kernel and its headers")
    named = "kernel-5.14.0-570.12.1.el9_6 kernel-devel-matched-5.14.0-570.12.1.el9_6"
    assert f"install {named}\n" in install
    assert f"versionlock add {named} " in install
    (boot,) = commands(plan, "Set the declared kernel for the next boot")
    assert "grubby --set-default /boot/vmlinuz-5.14.0-570.12.1.el9_6.x86_64" in boot
