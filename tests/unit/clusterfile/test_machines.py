"""What is declared of machines: BMCs, serial numbers, MACs, machine lists and the boot network."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from rackwright.clusterfile.machines import MAX_MISTAKES
from rackwright.model.bmc import BmcProtocol
from rackwright.model.install import BootWay, DiskRule
from tests.unit.clusterfile.base_file import problems_of
from tests.unit.clusterfile.machine_files import BMC, HEADER, INSTALL, MACHINES, MACS, load, machines

DIGEST = "a1" * 32
LIST = (BMC, "    machines: m.csv\n")
IMAGE_ONLY = (INSTALL, "    install: {image: images/worker}\n")
ROWS = "".join(f"w{n},02:00:00:00:00:0{n},SN{n},D{n},10.9.0.1{n},\n" for n in range(1, 5))


def mistakes(folder, *edits, rows=None):
    if rows is not None:
        (folder / "m.csv").write_text(rows)
    return [(one.path, one.message, one.hint) for one in problems_of(folder, machines(*edits))]


def test_what_a_group_declares_is_counted_on(tmp_path):
    cluster = load(tmp_path, machines((BMC, f"{BMC}    serials: [A1, A2, 'A 3', A4]\n")))
    nodes = [cluster.by_name[f"w{number}"] for number in range(1, 5)]
    assert [node.serial for node in nodes] == ["A1", "A2", "A 3", "A4"]
    assert [str(node.bmc.address) for node in nodes] == [f"10.9.0.1{number}" for number in range(1, 5)]
    bmc = nodes[0].bmc
    assert (bmc.protocol, bmc.port, bmc.user, bmc.password) == ("redfish", 443, "admin", "bmc_password")
    assert nodes[0].install.image == tmp_path / "images/worker"
    assert nodes[0].install.boot is BootWay.VIRTUAL_MEDIA
    assert cluster.by_name["head1"].bmc is cluster.by_name["head1"].install is None
    assert cluster.boot_network.network == "mgmt"
    assert cluster.boot_network.bmc_server == cluster.boot_network.server == IPv4Address("10.1.0.5")


def test_settings_of_a_group_go_over_those_of_defaults(tmp_path):
    defaults = (
        "  bmc: {user: root, protocol: ipmi, ca: ca/bmc.pem}\n  install: {console: 'ttyS1,9600', boot: pxe}\n"
    )
    cluster = load(
        tmp_path,
        machines(
            ("  os: debian-13\n", f"  os: debian-13\n{defaults}"),
            (BMC, "    bmc: {address: 10.9.0.11, user: ops}\n"),
        ),
    )
    node = cluster.by_name["w1"]
    assert (node.bmc.user, node.bmc.protocol, node.bmc.port) == ("ops", BmcProtocol.IPMI, 623)
    assert node.bmc.ca == tmp_path / "ca/bmc.pem"
    assert (node.install.console, node.install.boot) == ("ttyS1,9600", BootWay.PXE)


def test_a_machine_list_gives_each_node_its_own(tmp_path):
    certificate = ":".join(["A1"] * 32)
    (tmp_path / "m.csv").write_text(
        f"# racked 2026-11-20\n{HEADER}{ROWS.replace('10.9.0.11,', f'10.9.0.11,{certificate}')}"
    )
    cluster = load(tmp_path, machines(LIST, IMAGE_ONLY, (f"    macs: [{MACS}]\n", "")))
    first, second = cluster.by_name["w1"], cluster.by_name["w2"]
    assert (first.mac, first.serial, str(first.bmc.address)) == ("02:00:00:00:00:01", "SN1", "10.9.0.11")
    assert (first.bmc.certificate, second.bmc.certificate) == (DIGEST, None)
    assert first.install.disk == DiskRule(serials=("D1",))


def test_disks_of_the_list_win_over_the_rule_of_the_group(tmp_path):
    (tmp_path / "m.csv").write_text("node,disk\nw1,D1\n")
    cluster = load(tmp_path, machines((BMC, f"{BMC}    machines: m.csv\n")))
    assert cluster.by_name["w1"].install.disk == DiskRule(serials=("D1",))
    assert cluster.by_name["w2"].install.disk == DiskRule(by_path=("pci-0000:00:17.0-ata-1",))


BMCS = [
    (
        [("  oob: {purpose: bmc, cidr: 10.9.0.0/24}\n", "")],
        "nodes[1].bmc.address",
        "No network has the purpose `bmc`.",
        "e.g. `networks: {bmc: {purpose: bmc, cidr: 10.20.0.0/16}}`",
    ),
    (
        [(BMC, "    bmc: {address: 10.9.9.11}\n")],
        "nodes[1].bmc.address",
        "The BMC of w1 would get 10.9.9.11, which is not in oob (10.9.0.0/24).",
        None,
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.253}\n")],
        "nodes[1].bmc.address",
        "The BMC of w3 would get 10.9.0.255, which is not in oob (10.9.0.0/24).",
        None,
    ),
    (
        [(BMC, "    bmc: {address: 255.255.255.254}\n")],
        "nodes[1].bmc.address",
        "The BMC addresses would go beyond 255.255.255.255.",
        None,
    ),
    (
        [("  os: debian-13\n", "  os: debian-13\n  bmc: {address: 10.9.0.50}\n")],
        "defaults.bmc.address",
        "`defaults` cannot set a BMC address: each group has its own.",
        "move it to `bmc:` of the group",
    ),
    (
        [("  os: debian-13\n", f"  os: debian-13\n  bmc: {{certificate: {DIGEST}}}\n")],
        "defaults.bmc.certificate",
        "`defaults` cannot set a BMC certificate: each BMC has its own.",
        "list the certificates in `machines`, in the column bmc_certificate",
    ),
    (
        [(BMC, f"    bmc: {{address: 10.9.0.11, certificate: {DIGEST}}}\n")],
        "nodes[1].bmc.certificate",
        "The group has several nodes, but declares one BMC certificate.",
        "list the certificates in `machines`, in the column bmc_certificate",
    ),
    (
        [(BMC, f"    bmc: {{address: 10.9.0.11, certificate: {DIGEST.upper()}}}\n")],
        "nodes[1].bmc.certificate",
        "Not a SHA-256: 64 lower-case hexadecimal digits, as `sha256sum` prints them.",
        "e.g. `e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855`",
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.11, user: 'a b'}\n")],
        "nodes[1].bmc.user",
        "Not a valid BMC user name: letters, digits, `.`, `_` and `-`, at most 32 characters.",
        "e.g. `admin`",
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.11, protocol: ilo}\n")],
        "nodes[1].bmc.protocol",
        "Not one of: redfish, ipmi.",
        None,
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.11, password: Hunter2-hunter2}\n")],
        "nodes[1].bmc.password",
        "Secret in plaintext.",
        "remove it and treat it as leaked; rackwright generates secrets and keeps them encrypted",
    ),
    (
        [(BMC, "    bmc: {address: 10.9.0.11, timeout_seconds: 0}\n")],
        "nodes[1].bmc.timeout_seconds",
        "The number must be at least 1.",
        None,
    ),
]
QUOTE = "'"
SERIALS = [
    (
        [(BMC, f"{BMC}    serials: [A1, A2]\n")],
        "nodes[1].serials",
        "The group has 4 nodes, but 2 serial numbers.",
        "list one per node, in NodeSet order",
    ),
    (
        [(BMC, f"{BMC}    serials: [A1, A2, '!', A4]\n")],
        "nodes[1].serials[2]",
        "Not a valid machine serial number: letters, digits, spaces and `._/+-`, at most 64 characters.",
        "e.g. `CZJ0420G3K`",
    ),
    (
        [(BMC, f"{BMC}    serials: [A1, A2, A2, A4]\n")],
        "nodes[1].serials",
        "w3 would have the serial number A2, which w2 has.",
        None,
    ),
]
NEVER_SET = "is a vendor's placeholder, not a serial number: it does not identify a machine."
NEVER_SET_HINT = "remove it: the MAC addresses and the UUID that the BMC reports are compared instead"
SERIALS += [
    (
        [(BMC, f"{BMC}    serials: [A1, {text}, A3, A4]\n")],
        "nodes[1].serials[1]",
        f"`{text.strip(QUOTE)}` {NEVER_SET}",
        NEVER_SET_HINT,
    )
    for text in (
        "Default string",
        "'0123456789'",
        "To be filled by O.E.M.",
        "To Be Filled By O.E.M.",
        "None",
        "'0000'",
    )
]
SERIALS += [
    (
        [(BMC, f"{BMC}    serials: [A1, Sn2, SN2, A4]\n")],
        "nodes[1].serials",
        "w3 would have the serial number SN2, which w2 has as Sn2.",
        None,
    ),
]
BOOT_NETWORK = [
    (
        [("{server: 10.1.0.5}", "{server: 10.8.0.5}")],
        "boot_network.server",
        "The address is not in mgmt (10.1.0.0/24).",
        None,
    ),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.255}")],
        "boot_network.server",
        "The address is the network or broadcast address of mgmt (10.1.0.0/24).",
        None,
    ),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.5, network: mgmtt}")],
        "boot_network.network",
        "Network mgmtt does not exist.",
        "did you mean `mgmt`?",
    ),
    ([("{server: 10.1.0.5}", "{}")], "boot_network.server", "The key `server` is missing.", None),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.5, at_once: 0}")],
        "boot_network.at_once",
        "The number must be at least 1.",
        None,
    ),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.5, rack_percent: 101}")],
        "boot_network.rack_percent",
        "The number must be at most 100.",
        None,
    ),
    (
        [("{server: 10.1.0.5}", "{server: 10.1.0.5, bmc_server: here}")],
        "boot_network.bmc_server",
        "Not a valid IPv4 address.",
        "e.g. `10.1.0.11`",
    ),
]


@pytest.mark.parametrize(("edits", "path", "message", "hint"), [*BMCS, *SERIALS, *BOOT_NETWORK])
def test_a_mistake_is_named_once_with_its_place_and_hint(tmp_path, edits, path, message, hint):
    assert mistakes(tmp_path, *edits) == [(path, message, hint)]


LISTED = [
    ("w9,,,,,", "Unknown node w9.", None),
    ("w11,,,,,", "Unknown node w11.", "did you mean `w1`?"),
    (",,,A,,", "The row has no node name.", "put a node name in the column node, or remove the row"),
    ("w1,xx,,,10.9.0.1,", "xx is not a valid MAC address.", None),
    ("w1,,!,,10.9.0.1,", "! is not a valid machine serial number.", None),
    ("w1,,Default string,,10.9.0.1,", f"`Default string` {NEVER_SET}", NEVER_SET_HINT),
    ("w1,,0123456789,,10.9.0.1,", f"`0123456789` {NEVER_SET}", NEVER_SET_HINT),
    ("w1,,,/dev/sda,10.9.0.1,", "/dev/sda is not a valid disk serial number.", None),
    (
        "w1,,,A B C,10.9.0.1,",
        "The column disk takes one serial number, or two different ones.",
        "e.g. `S4YNNX0R1 S4YNNX0R2`",
    ),
    (
        "w1,,,A A,10.9.0.1,",
        "The column disk takes one serial number, or two different ones.",
        "e.g. `S4YNNX0R1 S4YNNX0R2`",
    ),
    ("w1,,,,10.9.0,", "10.9.0 is not a valid IPv4 address.", None),
    (
        "w1,,,,10.9.0.1,abc",
        "abc is not the SHA-256 of a certificate.",
        "`openssl x509 -in bmc.pem -noout -fingerprint -sha256` prints it",
    ),
    (
        "w1,,,,10.9.0.1,,,x",
        "The row has 8 columns, but the header has 6.",
        "quote text that contains commas",
    ),
]


@pytest.mark.parametrize(("row", "message", "hint"), LISTED)
def test_a_row_that_is_wrong_is_named_by_its_line(tmp_path, row, message, hint):
    """And nothing follows from it: not that its node has no BMC, nor that no disk is declared."""
    found = mistakes(tmp_path, LIST, IMAGE_ONLY, rows=f"{HEADER}{row}\n")
    assert found == [("nodes[1].machines", f"m.csv:2: {message}", hint)]


def test_a_node_is_listed_once(tmp_path):
    found = mistakes(tmp_path, LIST, rows=f"{HEADER}{ROWS}w1,,,,10.9.0.99,\n")
    assert found == [("nodes[1].machines", "m.csv:6: w1 is already on line 2.", "remove one of the rows")]


@pytest.mark.parametrize(
    ("rows", "message", "hint"),
    [
        ("mac,serial\n", "m.csv:1: Missing columns in the header: node.", "start the list with the header `node`; optional: mac, serial, disk, bmc, bmc_certificate"),
        ("node,macc\n", "m.csv:1: Unknown column macc.", "did you mean `mac`?"),
        ("node,mac,mac\n", "m.csv:1: The header has mac twice.", "remove one"),
        ("", "m.csv is empty.", "start the list with the header `node`; optional: mac, serial, disk, bmc, bmc_certificate"),
        ("node;mac\n", "m.csv:1: Missing columns in the header: node.", "separate the columns with commas"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_read(tmp_path, rows, message, hint):
    assert mistakes(tmp_path, LIST, rows=rows) == [("nodes[1].machines", message, hint)]


def test_a_list_that_is_missing(tmp_path):
    found = mistakes(tmp_path, LIST)
    expected = f"{tmp_path / 'm.csv'} does not exist."
    assert found == [("nodes[1].machines", expected, "the path is relative to the cluster file")]


def test_a_list_of_all_groups_is_read_and_its_mistakes_are_noted_once(tmp_path):
    """The groups after the first one keep their rows."""
    text = machines(
        ("  os: debian-13\n", "  os: debian-13\n  machines: m.csv\n"),
        (BMC, ""),
        IMAGE_ONLY,
        (f"    macs: [{MACS}]\n", ""),
        ("    addresses: {mgmt: 10.1.0.10}\n", "    addresses: {mgmt: 10.1.0.10}\n    macs: ['02:00:00:00:00:77']\n"),
    )  # fmt: skip
    (tmp_path / "m.csv").write_text(f"{HEADER}{ROWS}x1,,,,,\n")
    assert [(one.path, one.message) for one in problems_of(tmp_path, text)] == [
        ("defaults.machines", "m.csv:6: Unknown node x1.")
    ]


def test_no_more_than_twenty_mistakes_of_a_list_are_shown(tmp_path):
    rows = "".join(f"x{number},,,,,\n" for number in range(MAX_MISTAKES + 5))
    found = mistakes(tmp_path, LIST, rows=HEADER + rows)
    assert len(found) == MAX_MISTAKES + 1
    assert found[-1][1] == "The machine list has 5 more mistakes."


def test_what_two_machines_cannot_both_have(tmp_path):
    rows = "".join(f"w{n},02:00:00:00:00:0{n},SN,D,10.9.0.11,{DIGEST}\n" for n in (1, 2))
    rows += "w3,02:00:00:00:00:03,SN3,D3,10.9.0.13,\nw4,02:00:00:00:00:04,SN4,D4,10.9.0.14,\n"
    found = mistakes(tmp_path, LIST, IMAGE_ONLY, rows=HEADER + rows)
    assert sorted(message for _, message, _ in found) == [
        "w2 would have the BMC address 10.9.0.11, which w1 has in m.csv:2.",
        f"w2 would have the BMC certificate {DIGEST}, which w1 has in m.csv:2.",
        "w2 would have the disk D, which w1 has in m.csv:2.",
        "w2 would have the serial number SN, which w1 has in m.csv:2.",
    ]


def test_serial_numbers_of_a_list_that_differ_in_their_case_alone(tmp_path):
    found = mistakes(tmp_path, LIST, IMAGE_ONLY, rows=HEADER + ROWS.replace("SN3", "sn1"))
    assert [message for _, message, _ in found] == [
        "w3 would have the serial number sn1, which w1 has as SN1 in m.csv:2."
    ]


def test_a_mac_of_the_file_and_one_of_the_list_are_compared(tmp_path):
    rows = ROWS.replace("00:01,", "00:11,")
    assert mistakes(tmp_path, LIST, IMAGE_ONLY, rows=HEADER + rows) == [
        ("nodes[1].macs", "w1 has 02:00:00:00:00:01 here, but 02:00:00:00:00:11 in m.csv:2.", "remove one of them")
    ]  # fmt: skip


def test_the_same_mac_in_file_and_list_under_two_nodes(tmp_path):
    head = (
        "    addresses: {mgmt: 10.1.0.10}\n",
        "    addresses: {mgmt: 10.1.0.10}\n    macs: ['02:00:00:00:00:02']\n",
    )
    found = mistakes(tmp_path, LIST, IMAGE_ONLY, (f"    macs: [{MACS}]\n", ""), head, rows=HEADER + ROWS)
    assert found == [
        ("nodes[1].macs", "w2 would have the MAC address 02:00:00:00:00:02, which head1 has.", None)
    ]


def test_the_file_is_correct(tmp_path):
    assert problems_of(tmp_path, MACHINES) == ()
