"""What is installed on which disk: every declaration that could mean another disk is a mistake."""

from __future__ import annotations

import pytest

from tests.unit.clusterfile.base_file import problems_of
from tests.unit.clusterfile.machine_files import BMC, HEADER, INSTALL, MACS, load, machines

PRESEED = "installer: preseed, installer_files: netboot"
RULE = "disk: {by_path: [pci-0000:00:17.0-ata-1]}"
NO_DISK = (
    "nodes[1].install.disk",
    "No disk is declared for the operating system of w1.",
    "declare a rule with `by_path`, `model` or `serials`, or fill the column disk of `machines`",
)
NVME = """\
    nvme:
      - {count: 2, size_gb: 480, use: boot, slots: ['0000:01:00.0', '0000:02:00.0']}
      - {count: 2, size_gb: 3840, slots: ['0000:05:00.0', '0000:06:00.0']}
"""
DRIVES = ("    memory_mib: 65536\n", f"    memory_mib: 65536\n{NVME}")
OWN = ("  sku: cpu-16c-64g\n", "  sku: own-node\n")


def install(settings):
    return (INSTALL, f"    install: {{{settings}}}\n")


def mistakes(folder, *edits):
    return [(one.path, one.message, one.hint) for one in problems_of(folder, machines(*edits))]


CASES = [
    (
        [install(RULE)],
        "nodes[1].install",
        "The group declares neither an image nor an installer.",
        "e.g. `image: images/worker`, which `rackwright image build --format root` builds",
    ),
    (
        [install(f"image: x, installer: preseed, {RULE}")],
        "nodes[1].install",
        "Both `image` and `installer` are set.",
        "keep one of them",
    ),
    (
        [
            install(f"installer: preseed, {RULE}"),
            ("  os: debian-13\n", "  os: debian-13\n  install: {image: x}\n"),
        ],
        "nodes[1].install",
        "Both `image` and `installer` are set.",
        "keep one of them",
    ),
    (
        [install(f"installer: kickstart, {RULE}")],
        "nodes[1].install.installer",
        "debian-13 has no installer that supports kickstart.",
        "set `installer: preseed`",
    ),
    (
        [install(f"installer: preseed, {RULE}")],
        "nodes[1].install.installer",
        "`installer_files` is missing: the installer's kernel and boot loaders are needed.",
        "set `installer_files:` to debian-installer/amd64 of netboot.tar.gz",
    ),
    (
        [install(f"{PRESEED}, boot: http, {RULE}")],
        "nodes[1].install.boot",
        "An installer boots from virtual media or PXE only.",
        "set `boot: virtual-media`",
    ),
    (
        [install(f"{PRESEED}, installer_media: 'http://10.1.0.5/x.iso', {RULE}")],
        "nodes[1].install.installer_media",
        "Debian's installer ignores `installer_media`: it downloads its packages from the archive or a mirror.",
        "set `mirrors: {apt: ...}`, or remove `installer_media`",
    ),
    (
        [
            ("  os: debian-13\n", "  os: ubuntu-24.04\n"),
            install(f"installer: autoinstall, installer_files: iso, {RULE}"),
        ],
        "nodes[1].install.installer",
        "`installer_media` is missing: the installer downloads its system from there.",
        "set `installer_media:` to the URL of the live-server ISO",
    ),
    (
        [install(f"image: x, installer_files: netboot, {RULE}")],
        "nodes[1].install",
        "`installer_files` or `installer_media` is set without `installer`.",
        "set e.g. `installer: preseed`, or remove them",
    ),
    ([install("image: x")], *NO_DISK),
    (
        [install("image: x, disk: {serials: [S1]}")],
        "nodes[1].install.disk.serials",
        "A disk has one serial number, but the group has 4 nodes.",
        "list the serial numbers in `machines`, in the column disk",
    ),
    (
        [install("image: x, disk: {by_path: [pci-1], model: AB}")],
        "nodes[1].install.disk",
        "The disk is declared by more than one kind of rule.",
        "keep one of serials, by_path, model",
    ),
    (
        [install("image: x, disk: {size_gb: 480}")],
        "nodes[1].install.disk",
        "`size_gb` needs `model`.",
        "add `model:`",
    ),
    (
        [install(f"image: x, mirror: true, {RULE}")],
        "nodes[1].install.disk",
        "1 disk is declared, but the operating system needs 2.",
        "declare two different disks, or remove `mirror`",
    ),
    (
        [install("image: x, mirror: true, disk: {by_path: [pci-1-a, pci-1-a]}")],
        "nodes[1].install.disk",
        "1 disk is declared, but the operating system needs 2.",
        "declare two different disks, or remove `mirror`",
    ),
    (
        [install("image: x, disk: {by_path: [pci-1-a, pci-1-b]}")],
        "nodes[1].install.disk",
        "2 disks are declared, but the operating system needs 1.",
        "declare one disk, or set `mirror: true` for both",
    ),
    (
        [install("image: x, disk: {by_path: [a1, a2, a3]}")],
        "nodes[1].install.disk.by_path",
        "The list may have at most 2 entries.",
        None,
    ),
    (
        [install("image: x, disk: {by_path: [/dev/disk/by-path/x]}")],
        "nodes[1].install.disk.by_path[0]",
        "Not a valid name in /dev/disk/by-path: letters, digits and `:._+-`.",
        "e.g. `pci-0000:00:17.0-ata-1`",
    ),
    (
        [install("image: x, disk: {serials: [/dev/sda]}")],
        "nodes[1].install.disk.serials[0]",
        "Not a valid disk serial number.",
        "`lsblk -dno PATH,SERIAL,MODEL` lists them",
    ),
    (
        [install(f"image: x, encryption: tang, {RULE}")],
        "nodes[1].install",
        "`tang` and `encryption: tang` must be set together.",
        "e.g. `tang: http://10.1.0.5`",
    ),
    (
        [install(f"image: x, tang: 'http://10.1.0.5', {RULE}")],
        "nodes[1].install",
        "`tang` and `encryption: tang` must be set together.",
        "e.g. `tang: http://10.1.0.5`",
    ),
    (
        [install("image: x, diskless: true, mirror: true")],
        "nodes[1].install",
        "A diskless node cannot have an array, an installer or encryption.",
        "remove them",
    ),
    (
        [install("image: x, diskless: true, volumes: lvm")],
        "nodes[1].install",
        "A diskless node cannot have volumes.",
        "remove `volumes:`",
    ),
    (
        [install(f"image: x, kernel_arguments: ['a b'], {RULE}")],
        "nodes[1].install.kernel_arguments[0]",
        "Not a valid kernel argument: a name, or name=value without spaces and quotes.",
        "e.g. `iommu=pt`",
    ),
    (
        [install(f"image: x, console: tty1, {RULE}")],
        "nodes[1].install.console",
        "Not a valid serial console: a device and a speed.",
        "e.g. `ttyS0,115200`",
    ),
    (
        [install(f"image: x, bond: ['02:00:00:00:00:99'], {RULE}")],
        "nodes[1].install.bond",
        "A bond port has one MAC address, but the group has 4 nodes.",
        "declare the bond in a separate group per node",
    ),
    (
        [("boot_network: {server: 10.1.0.5}\n\n", "")],
        "nodes[1].install",
        "`boot_network` is missing: machines without an operating system need it to reach this control node.",
        "e.g. `boot_network: {server: 10.1.0.5}`",
    ),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.5, answers_port: 8443}")],
        "boot_network",
        "`port` and `answers_port` are the same.",
        "remove one of them: the defaults are 8443 and 8480",
    ),
    (
        [(f"    macs: [{MACS}]\n", "")],
        "nodes[1].install",
        "The MAC address of w1 is not declared.",
        "add `macs:` or `machines:`",
    ),
    (
        [(BMC, "")],
        "nodes[1].install",
        "w1 has no BMC to boot the installer with.",
        "declare one, e.g. `bmc: {address: 10.20.0.11}`, or remove `install:`",
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.11, protocol: ipmi}\n")],
        "nodes[1].install",
        "IPMI supports neither virtual media nor HTTP boot.",
        "set `boot: pxe`",
    ),
    (
        [OWN, DRIVES, install("image: x, disk: {by_path: ['pci-0000:05:00.0-nvme-1']}")],
        "nodes[1].install.disk.by_path",
        "pci-0000:05:00.0-nvme-1 is one of the 2 drives that own-node uses for scratch.",
        "name the slot of the boot drive; `ls -l /dev/disk/by-path` lists the slots",
    ),
    (
        [OWN, DRIVES, install("image: x, disk: {model: Big, size_gb: 3840}")],
        "nodes[1].install.disk.size_gb",
        "The rule also matches the 2 scratch drives of 3840 GB in own-node.",
        "declare the slot with `by_path`",
    ),
    (
        [OWN, DRIVES, install("image: x, disk: {model: Small, size_gb: 470}")],
        "nodes[1].install.disk.size_gb",
        "The rule needs 1, but matches 2 drives of 480 GB in own-node.",
        "declare the slot with `by_path`",
    ),
]


@pytest.mark.parametrize(("edits", "path", "message", "hint"), CASES)
def test_a_mistake_is_named_once_with_its_place_and_hint(tmp_path, edits, path, message, hint):
    assert mistakes(tmp_path, *edits) == [(path, message, hint)]


PROVISIONING = (
    ("  store:\n", "  prov: {purpose: storage, cidr: 10.30.0.0/24}\n  store:\n"),
    ("{server: 10.1.0.5}", "{server: 10.30.0.5, network: prov}"),
)
NO_ADDRESS = (
    "nodes[1].install",
    "w1 has no address on %s, the boot network, and cannot fetch its image.",
    "declare one in `addresses`, e.g. `%s`, or set another `boot_network.network`",
)


@pytest.mark.parametrize("boot", ["virtual-media", "pxe"])
def test_an_installed_node_has_an_address_on_the_boot_network(tmp_path, boot):
    way = install(f"image: x, boot: {boot}, {RULE}")
    path, message, hint = NO_ADDRESS
    assert mistakes(tmp_path, *PROVISIONING, way) == [(path, message % "prov", hint % "prov: 10.30.0.6")]
    addressed = ("      mgmt: 10.1.0.11\n", "      mgmt: 10.1.0.11\n      prov: 10.30.0.11\n")
    assert mistakes(tmp_path, *PROVISIONING, way, addressed) == []


def test_nodes_have_no_address_on_the_network_of_bmcs(tmp_path):
    path, message, hint = NO_ADDRESS
    server = ("{server: 10.1.0.5}", "{server: 10.9.0.5, network: oob}")
    assert mistakes(tmp_path, server) == [(path, message % "oob", hint % "oob: 10.9.0.6")]


def test_the_server_is_no_node_that_is_installed(tmp_path):
    first = next(str(one.address) for one in load(tmp_path, machines()).by_name["w2"].addresses)
    assert mistakes(tmp_path, ("{server: 10.1.0.5}", f"{{server: {first}}}")) == [
        ("nodes[1].install", f"w2 has the address {first}, which is also `boot_network.server`.", None)
    ]


def test_a_container_is_not_installed(tmp_path):
    lab = ("  os: debian-13\n", "  os: debian-13\n  platform: container\n  lab: {cpus: 1, memory_mib: 512}\n")
    assert mistakes(tmp_path, lab) == [
        ("nodes[1].install", "A container cannot be installed.", "remove `install:`")
    ]


@pytest.mark.parametrize(
    "settings",
    [
        "image: x, diskless: true",
        "image: x, mirror: true, volumes: lvm, disk: {by_path: [pci-1-a, pci-1-b]}",
        "image: x, encryption: tpm2, disk: {model: INTEL SSDSC2KB480G8}",
        f"{PRESEED}, disk: {{model: Small, size_gb: 480}}",
        f"{PRESEED}, boot: pxe, {RULE}",
    ],
)
def test_what_is_correct(tmp_path, settings):
    assert mistakes(tmp_path, install(settings)) == []


def test_the_installers_folder_is_relative_to_the_cluster_file(tmp_path):
    made = load(tmp_path, machines(install(f"{PRESEED}, {RULE}")))
    assert made.by_name["w1"].install.installer_files == tmp_path / "netboot"


def test_two_drives_for_the_system_are_a_mirror(tmp_path):
    rule = install("image: x, mirror: true, disk: {model: Small, size_gb: 480}")
    assert mistakes(tmp_path, OWN, DRIVES, rule) == []


def test_the_list_has_one_disk_of_a_mirror(tmp_path):
    (tmp_path / "m.csv").write_text(f"{HEADER}w1,,,D1,,\nw2,,,D2 E2,,\nw3,,,D3 E3,,\nw4,,,D4 E4,,\n")
    edits = (BMC, f"{BMC}    machines: m.csv\n"), install("image: x, mirror: true")
    assert mistakes(tmp_path, *edits) == [
        (
            "nodes[1].machines",
            "m.csv:2: 1 disk is declared, but the operating system needs 2.",
            "declare two different disks, or remove `mirror`",
        )
    ]


def test_bmcs_of_the_list_bring_the_defaults_with_them(tmp_path):
    """What `defaults` declares concerns each group with a BMC, wherever its address is: its disk has to be declared."""
    rows = "".join(f"w{number},,,,10.9.0.1{number},\n" for number in range(1, 5))
    (tmp_path / "m.csv").write_text(HEADER + rows)
    defaults = ("  os: debian-13\n", "  os: debian-13\n  machines: m.csv\n  install: {image: x}\n")
    assert mistakes(tmp_path, defaults, (BMC, ""), (INSTALL, "")) == [NO_DISK]
    (tmp_path / "m.csv").write_text(f"{HEADER}w1,,,,10.9.0.11,\n")
    assert load(tmp_path, machines(defaults, (BMC, ""), install(RULE), ("  - nodes: w[1-4]", "  - nodes: w1"),
        (f"[{MACS}]", "['02:00:00:00:00:01']"), ("r[1-2]", "r1"), ("s[1-2]", "s1"))).by_name["w1"].install  # fmt: skip


def test_one_disk_in_two_groups(tmp_path):
    group = (
        "\n  - {nodes: %s, roles: [worker], addresses: {mgmt: 10.1.0.%d}, macs: ['02:00:00:00:01:%d'], "
        "bmc: {address: 10.9.0.%d}, install: {image: x, disk: {serials: [S1]}}}"
    )
    groups = "".join(group % (f"x{number}", number, number, number) for number in (20, 21))
    assert mistakes(tmp_path, ("\nroles:\n", f"{groups}\n\nroles:\n")) == [
        ("nodes[3].install.disk.serials", "x21 would have the disk S1, which x20 has.", None)
    ]


LAYOUT = "roles:\n  storage_layout:\n    disks: {fast: %s}\n    filesystems: {/scratch: {type: xfs, on: fast}}\n    on: [worker]\n"


@pytest.mark.parametrize(
    ("disk", "rule", "shown"),
    [
        ("{slot: '0000:05:00.0'}", "{by_path: ['pci-0000:05:00.0-nvme-1']}", "fast (slot 0000:05:00.0)"),
        (
            "{slot: 'pci-0000:00:17.0-ata-1'}",
            "{by_path: ['pci-0000:00:17.0-ata-1']}",
            "fast (slot pci-0000:00:17.0-ata-1)",
        ),
        ("{slot: '0000:05:00.0'}", "{by_path: ['pci-0000:50:00.0-nvme-1']}", None),
        ("{slot: 'pci-0000:00:17.0-ata-1'}", "{by_path: ['pci-0000:00:17.0-ata-11']}", None),
        ("{slot: '0000:05:00.0'}", "{model: Small}", None),
    ],
)
def test_the_system_is_not_put_on_the_disks_of_a_role(tmp_path, disk, rule, shown):
    edits = ("\nroles:\n", "\n" + LAYOUT % disk), install(f"image: x, disk: {rule}")
    wrong = (
        "nodes[1].install.disk",
        f"w1 would get its operating system on {shown}, which the role storage_layout uses for data.",
        "declare another disk, here or for the role",
    )
    assert mistakes(tmp_path, *edits) == ([] if shown is None else [wrong])


def test_nor_on_a_disk_of_theirs_by_its_serial(tmp_path):
    serials = "{serials: {w1: D9, w2: D2, w3: D8, w4: D7}}"
    (tmp_path / "m.csv").write_text(f"{HEADER}w1,,,D1,,\nw2,,,D2,,\nw3,,,D3,,\nw4,,,D4,,\n")
    edits = (BMC, f"{BMC}    machines: m.csv\n"), install("image: x"), ("\nroles:\n", "\n" + LAYOUT % serials)
    assert mistakes(tmp_path, *edits) == [
        (
            "nodes[1].install.disk",
            "w2 would get its operating system on fast (serial D2), which the role storage_layout uses for data.",
            "declare another disk, here or for the role",
        )
    ]


def test_nor_on_a_drive_that_the_sku_has_for_data(tmp_path):
    """By the role's `sku_disks`: the SKU has these drives for something other than scratch here."""
    layout = (
        "\nroles:\n  storage_layout:\n    sku_disks: {fast: data}\n    on: [worker]\n"
        "    arrays: {pool: {level: 0, disks: [fast]}}\n    filesystems: {/scratch: {type: xfs, on: pool}}\n"
    )
    drives = (DRIVES[0], DRIVES[1].replace("size_gb: 3840,", "size_gb: 3840, use: data,"))
    rule = install("image: x, disk: {by_path: ['pci-0000:06:00.0-nvme-1']}")
    found = mistakes(tmp_path, OWN, drives, ("\nroles:\n", layout), rule)
    assert [message for _, message, _ in found] == [
        "w1 would get its operating system on fast1 (slot 0000:06:00.0), which the role storage_layout uses for data."
    ]


def test_a_diskless_node_may_have_data_anywhere(tmp_path):
    edits = ("\nroles:\n", "\n" + LAYOUT % "{slot: '0000:05:00.0'}"), install("image: x, diskless: true")
    assert mistakes(tmp_path, *edits) == []
