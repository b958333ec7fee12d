"""rackwright import csv: from a spreadsheet's list to a valid cluster file."""

from __future__ import annotations

import csv
import random

import pytest

from tests.unit.importers.filling import marked_lines, round_trip

HEADER = (
    "Hostname",
    "Role",
    "Management IP",
    "MAC",
    "Serial Number",
    "iDRAC IP",
    "Rack",
    "Unit",
    "Leaf",
    "Model",
    "OS",
)


def site(workers: int = 196) -> list[dict[str, str]]:
    """Two heads, two login nodes and workers in racks of 14, every value different from node to node."""
    rows = []
    for index in range(workers + 4):
        role = "head" if index < 2 else "login" if index < 4 else "compute"
        number = {"head": index + 1, "login": index - 1, "compute": index - 3}[role]
        rack, slot = divmod(index - 4, 14) if index > 3 else (-1, index)
        values = (
            f"{ {'head': 'head', 'login': 'login', 'compute': 'gpu'}[role] }{number:03d}".replace(" ", ""),
            role,
            f"10.20.{1 + index // 200}.{10 + index % 200}/16",
            f"52:54:00:00:{index // 256:02x}:{index % 256:02x}",
            f"SN{index:05d}",
            f"10.30.{1 + index // 200}.{10 + index % 200}/16",
            f"r{rack + 1:02d}",
            str(1 + 2 * slot),
            f"leaf{rack + 1:02d}",
            "DGX H100" if role == "compute" else "cpu-64c-256g",
            "Ubuntu 24.04 LTS" if role == "compute" else "ubuntu-24.04",
        )
        rows.append(dict(zip(HEADER, values, strict=True)))
    return rows


def write(path, rows, delimiter=","):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, HEADER, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_two_hundred_nodes_are_the_source_precisely(rackwright, tmp_path):
    rows = site()
    random.Random(7).shuffle(rows)
    source, out = write(tmp_path / "nodes.csv", rows, ";"), tmp_path / "cluster.yaml"
    result = rackwright("import", "csv", source, "-o", out, "--name", "west", "--domain", "hpc.example.com")
    assert result.status == 0, result.err
    assert result.out == ""
    cluster = round_trip(out, out.read_text())
    assert len(cluster.nodes) == 200
    for row in rows:
        node = cluster.by_name[row["Hostname"]]
        assert str(node.address_on("management")) == row["Management IP"].removesuffix("/16")
        assert (node.rack, node.position, node.switches) == (row["Rack"], int(row["Unit"]), (row["Leaf"],))
        assert (node.serial, node.mac) == (row["Serial Number"], row["MAC"])
        assert node.bmc is not None
        assert str(node.bmc.address) == row["iDRAC IP"].removesuffix("/16")
        assert node.sku.name == ("dgx-h100" if row["Model"] == "DGX H100" else "cpu-64c-256g")
        assert node.os.id == "ubuntu-24.04"
        assert {role.value for role in node.roles} == {"worker" if row["Role"] == "compute" else row["Role"]}


def test_equal_nodes_are_one_group(rackwright, tmp_path):
    result = rackwright("import", "csv", write(tmp_path / "nodes.csv", site()))
    text = result.out
    assert "  - nodes: gpu[001-196] # nodes.csv:6 to nodes.csv:201\n" in text
    assert "    rack: r[01-14]\n    position: {first: 1, step: 2}\n    switch: leaf[01-14]\n" in text
    assert result.err.splitlines() == [
        "read: list: nodes.csv",
        "200 nodes in 3 groups",
        "4 values missing, marked `# MISSING:`; fill them in, then `rackwright validate FILE`",
    ]
    assert len(marked_lines(text)) == 4  # name, domain, ssh.user, and which of two heads is primary


def test_an_address_off_the_count_ends_a_group(rackwright, tmp_path):
    rows = site(6)
    rows[7]["Management IP"] = "10.20.9.9/16"
    out = tmp_path / "cluster.yaml"
    assert rackwright("import", "csv", write(tmp_path / "n.csv", rows), "-o", out).status == 0
    names = [line.split()[2] for line in out.read_text().splitlines() if line.startswith("  - nodes:")]
    assert names == ["head[001-002]", "login[001-002]", "gpu[001-003]", "gpu004", "gpu[005-006]"]
    cluster = round_trip(out, out.read_text())
    assert str(cluster.by_name["gpu004"].address_on("management")) == "10.20.9.9"


def test_every_bad_cell_at_once(rackwright, tmp_path):
    rows = site(2)
    rows[0]["Hostname"] = "head one"
    rows[1]["Management IP"] = "10.20.1.300"
    rows[2]["MAC"] = "01:00:5e:00:00:01"
    rows[3]["Serial Number"] = "To be filled by O.E.M."
    rows[4]["Unit"] = "12.5"
    rows[5]["Rack"] = "täst"
    out = tmp_path / "cluster.yaml"
    result = rackwright("import", "csv", write(tmp_path / "n.csv", rows), "-o", out)
    assert result.status == 1
    assert not out.exists()
    assert result.err == (
        "error: The list has 6 mistakes; nothing was written.\n"
        "  n.csv:2, column 1: `head one` cannot be a node's name: A host name may contain only lower-case letters, digits "
        "and inner hyphens.\n"
        "  n.csv:3, column 3: ip `10.20.1.300`: not a valid IPv4 address\n"
        "  n.csv:4, column 4: mac `01:00:5e:00:00:01`: not a valid MAC address\n"
        "  n.csv:5, column 5: serial `To be filled by O.E.M.`: `To be filled by O.E.M.` is a vendor's placeholder, "
        "not a serial number: it does not identify a machine.\n"
        "  n.csv:6, column 8: position `12.5`: not a whole number from 0 to 200\n"
        "  n.csv:7, column 7: rack `täst`: A name may contain only lower-case letters, digits and inner hyphens, at most "
        "40 characters.\n"
    )


def test_two_nodes_with_one_value(rackwright, tmp_path):
    rows = site(2)
    rows[5]["Management IP"] = rows[4]["Management IP"]
    rows[5]["Serial Number"] = rows[4]["Serial Number"].lower()
    result = rackwright("import", "csv", write(tmp_path / "n.csv", rows))
    assert result.status == 1
    assert "n.csv:7: gpu002 has the address 10.20.1.14, which gpu001 (n.csv:6) has." in result.err
    assert "n.csv:7: gpu002 has the serial number sn00004, which gpu001 (n.csv:6) has." in result.err


@pytest.mark.parametrize(
    "name",
    [
        "a: b",
        "- x",
        "gpu1\x1b[31m",
        "gpu\u202e1",
        "{x: y}",
        "&a",
        "gpu 1",
        "ünode",
        "10.0.0.1",
        "'",
        "gpu[1-9]",
    ],
)
def test_hostile_names_are_refused(rackwright, tmp_path, name):
    rows = site(1)
    rows[4]["Hostname"] = name
    result = rackwright("import", "csv", write(tmp_path / "n.csv", rows))
    assert result.status == 1
    assert "n.csv:6, column 1" in result.err
    assert "\x1b" not in result.err
    assert "\u202e" not in result.err


@pytest.mark.parametrize("rack", ["no", "null", "12", "1e3", "on", "0x10"])
def test_racks_that_yaml_reads_as_something_else(rackwright, tmp_path, rack):
    rows = site(1)
    rows[4]["Rack"] = rack
    out = tmp_path / "cluster.yaml"
    assert rackwright("import", "csv", write(tmp_path / "n.csv", rows), "-o", out).status == 0
    assert round_trip(out, out.read_text()).by_name["gpu001"].rack == rack


def test_an_existing_file_is_never_replaced(rackwright, tmp_path):
    out = tmp_path / "cluster.yaml"
    out.write_text("mine")
    result = rackwright("import", "csv", write(tmp_path / "n.csv", site(1)), "-o", out)
    assert (result.status, out.read_text()) == (1, "mine")
    assert result.err == f"error: {out} exists already.\nhint: name another file, or move this one away\n"


def test_a_model_that_no_sku_certainly_is(rackwright, tmp_path):
    rows = site(3)
    for row in rows[4:]:
        row["Model"] = "PowerEdge XE9680 HGX H100"
    out = tmp_path / "cluster.yaml"
    rackwright("import", "csv", write(tmp_path / "n.csv", rows), "-o", out)
    assert (
        "    sku: # MISSING: SKU of the nodes, see `rackwright catalog`; `PowerEdge XE9680 HGX H100`: not certainly a SKU "
        "of the catalogue; nearest: `hgx-h100`, "
    ) in out.read_text()
    assert round_trip(out, out.read_text()).by_name["gpu001"].sku.name == "hgx-h100"


def test_columns_of_omnias_mapping_file(rackwright, tmp_path):
    (tmp_path / "pxe.csv").write_text(
        "FUNCTIONAL_GROUP_NAME,GROUP_NAME,SERVICE_TAG,PARENT_SERVICE_TAG,HOSTNAME,ADMIN_MAC,ADMIN_IP,BMC_MAC,BMC_IP\n"
        "slurm_control_node_x86_64,grp0,ABCD12,,ctl1,a0:b2:c3:d4:e5:f6,172.16.107.52,a2:b3:c4:d5:e6:f7,172.17.107.52\n"
        "slurm_node_rhel_10_0_x86_64,grp1,ABCD34,ABFL82,node1,b0:c2:d3:e4:f5:a6,172.16.107.43,b2:c3:d4:e5:f6:a7,172.17.107.43\n"
        "login_node_x86_64,grp2,ABCD56,,login1,c0:c2:d3:e4:f5:a6,172.16.107.44,,\n"
    )
    out = tmp_path / "cluster.yaml"
    result = rackwright("import", "csv", tmp_path / "pxe.csv", "-o", out)
    assert result.status == 0, result.err
    for column in ("GROUP_NAME", "PARENT_SERVICE_TAG", "BMC_MAC"):
        assert f"ignored: pxe.csv:1: column `{column}`: a cluster file has nothing of it\n" in result.err
    cluster = round_trip(out, out.read_text())
    assert [(node.name, *node.roles, node.serial) for node in cluster.nodes] == [
        ("ctl1", "head", "ABCD12"),
        ("login1", "login", "ABCD56"),
        ("node1", "worker", "ABCD34"),
    ]


def test_a_role_that_the_operator_explains(rackwright, tmp_path):
    rows = site(2)
    rows[4]["Role"] = "GPU box"
    rows[5]["Role"] = "spare"
    source = write(tmp_path / "n.csv", rows)
    plain = rackwright("import", "csv", source)
    assert plain.out.count("# MISSING: what the nodes are for") == 2
    explained = rackwright("import", "csv", source, "--role", "gpu box=worker", "--role", "spare=ignore")
    assert "# MISSING: what the nodes are for" not in explained.out
    assert "gpu002" not in explained.out
    assert "ignored: n.csv:7: `gpu002`: `spare` is not a node of the cluster\n" in explained.err
    wrong = rackwright("import", "csv", source, "--role", "spare=boss")
    assert (wrong.status, wrong.err.splitlines()[0]) == (
        64,
        "error: --role spare=boss is not NAME=ROLE with one of: head, worker, login, storage, ignore.",
    )
