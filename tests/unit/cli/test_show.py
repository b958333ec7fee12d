"""rackwright show: values and where they come from."""

from __future__ import annotations

import json

import pytest

from tests.unit.clusterfile.base_file import change

TEXT = change(
    ("  own-node:\n", "  cpu-16c-64g:\n"),
    ("munge: {}", "munge: {uid: 500}"),
    ("position: 1", "position: 1\n    os: rocky-9\n    options: {munge: {threads: 4}}"),
)


FABRICS = """\
fabrics:
  ib:
    spines: t1
    leaf_ports: 5
    uplinks: {each: 1, leaf_first: 33}
    switches:
      s1: {guid: "0x0002c903000e0b72"}
    cables: cables.csv
    max_ber: 1e-12
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(TEXT)
    return path


@pytest.fixture
def values(rackwright, file):
    def ask(*arguments: str) -> dict:
        result = rackwright("show", file, "--json", *arguments)
        assert result.status == 0, result.err
        return {entry["path"]: entry for entry in json.loads(result.out)["values"]}

    return ask


@pytest.mark.parametrize(
    ("path", "value", "kind", "text"),
    [
        ("name", "w3", "file", "{file}:50"),
        ("fqdn", "w3.demo.test", "derived", "name and domain, {file}:5"),
        ("roles", ["worker"], "file", "{file}:51"),
        ("os", "rocky-9", "file", "{file}:57"),
        ("platform", "bare-metal", "default", "default"),
        ("addresses.mgmt", "10.1.0.13", "derived", "counted over w[1-4], {file}:53"),
        ("addresses.ib[1]", "10.3.0.141", "derived", "counted over w[1-4], {file}:54"),
        ("rack", "r2", "derived", "counted over w[1-4], {file}:55"),
        ("mac", None, "default", "default"),
        ("sku.name", "cpu-16c-64g", "defaults", "defaults, {file}:9"),
        ("sku.cores_per_socket", 8, "file", "overrides the catalogue, {file}:40"),
        ("sku.nics", [], "default", "default"),
        ("options.munge.uid", 500, "file", "{file}:60"),
        ("options.munge.threads", 4, "override", "group override, {file}:58"),
        ("options.munge.gid", 440, "default", "default"),
    ],
)
def test_origin_of_a_nodes_value(values, file, path, value, kind, text):
    found = values("--node", "w3")[path]
    text = text.format(file=file)
    line = int(text.rpartition(":")[2]) if ":" in text else None
    # the role section moved down by the lines that the override added
    if path == "options.munge.uid":
        text, line = found["origin"]["text"], found["origin"]["line"]
        assert file.read_text().splitlines()[line - 1] == "  munge: {uid: 500}"
    assert found == {"path": path, "value": value, "origin": {"kind": kind, "text": text, "line": line}}


def test_a_switch_for_each_rail_and_a_named_mig_layout(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    leaves = [f"leaf{number}" for number in range(1, 9)]
    path.write_text(
        change(
            ("switch: s[1-2]", f"sku: dgx-h100\n    mig: all-balanced\n    switch: [{', '.join(leaves)}]"),
            ("      ib: 10.3.0.11\n", ""),
        )
    )
    result = rackwright("show", path, "--node", "w2", "--json")
    found = {entry["path"]: entry for entry in json.loads(result.out)["values"]}
    assert found["switch"]["value"] == leaves
    assert found["switch"]["origin"]["text"] == f"counted over w[1-4], {path}:58"
    assert found["mig"] == {
        "path": "mig",
        "value": {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1},
        "origin": {"kind": "file", "text": f"all-balanced, {path}:57", "line": 57},
    }
    whole = rackwright("show", path).out
    assert next(line for line in whole.splitlines() if line.startswith("w2 ")).split()[-1] == "leaf1-8"


def test_catalogue_entry(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(change())
    result = rackwright("show", path, "--node", "head1")
    assert any(line.endswith("# catalogue entry cpu-16c-64g") for line in result.out.splitlines())


def test_the_whole_cluster(rackwright, values, file):
    found = values()
    assert found["networks.store.mtu"]["origin"] == {"kind": "file", "text": f"{file}:19", "line": 19}
    assert found["networks.mgmt.mtu"]["value"] == 1500
    assert found["ssh.port"]["origin"]["kind"] == "default"
    assert found["roles.munge.uid"]["value"] == 500
    result = rackwright("show", file, "--json")
    assert json.loads(result.out)["nodes"] == ["head1", "w1", "w2", "w3", "w4"]


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("fabrics.ib.spines", "t1", 30),
        ("fabrics.ib.leaf_ports.first", 5, 31),
        ("fabrics.ib.leaf_ports.step", 1, None),
        ("fabrics.ib.uplinks.each", 1, 32),
        ("fabrics.ib.uplinks.leaf_first", 33, 32),
        ("fabrics.ib.uplinks.spine_first", 1, None),
        ("fabrics.ib.switches.s1.guid", "0x0002c903000e0b72", 34),
        ("fabrics.ib.switches.s1.firmware", None, None),
        ("fabrics.ib.cables", "cables.csv", 35),
        ("fabrics.ib.port_name", "{port}", None),
        ("fabrics.ib.max_ber", 1e-12, 36),
        ("fabrics.ib.speed_gbps", None, None),
        ("fabrics.ib.lanes", None, None),
        ("fabrics.ib.ports", None, None),
    ],
)
def test_rules_of_the_cabling(rackwright, tmp_path, path, value, line):
    file = tmp_path / "demo.yaml"
    (tmp_path / "cables.csv").write_text("from,from_port,to,to_port\n")
    file.write_text(change(("ssh:\n  user", f"{FABRICS}ssh:\n  user")))
    result = rackwright("show", file, "--json")
    found = {entry["path"]: entry for entry in json.loads(result.out)["values"]}
    text = "default" if line is None else f"{file}:{line}"
    origin = {"kind": "default" if line is None else "file", "text": text, "line": line}
    assert found[path] == {"path": path, "value": value, "origin": origin}
    row = next(each for each in rackwright("show", file).out.splitlines() if each.startswith(f"{path} "))
    shown = value if isinstance(value, str) else json.dumps(value)
    assert row.split() == [path, *shown.split(), "#", text]


def test_an_empty_section_has_its_defaults(rackwright, tmp_path):
    file = tmp_path / "demo.yaml"
    file.write_text(change(("ssh:\n  user", "fabrics:\n  ib:\nssh:\n  user")))
    found = [line for line in rackwright("show", file).out.splitlines() if line.startswith("fabrics.")]
    assert {line.split("#")[1] for line in found} == {" default"}


def test_details_are_what_a_machine_for_the_node_needs(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text(
        change(
            ("  sku: cpu-16c-64g", "  platform: vm\n  lab: {cpus: 16, memory_mib: 65536}\n  sku: own-node"),
            ("    memory_mib: 65536", "    memory_mib: 65536\n    nvme: [{count: 2, size_gb: 4}]"),
        )
    )
    head, worker, *_ = json.loads(rackwright("show", path, "--json").out)["details"]
    assert (head["name"], head["roles"], head["primary"], head["platform"]) == ("head1", ["head"], True, "vm")
    assert head["os"] == "debian-13"
    assert head["lab"]["cpus"] == 16
    assert head["topology"] == {"sockets": 1, "cores_per_socket": 8, "threads_per_core": 2}
    assert head["disks"] == [{"size_gb": 4}, {"size_gb": 4}]
    assert [(port["network"], port["rail"], port["address"]) for port in worker["ports"]] == [
        ("mgmt", 0, "10.1.0.11"),
        ("ib", 0, "10.3.0.11"),
        ("ib", 1, "10.3.0.139"),
    ]
    assert len({port["mac"] for port in (*head["ports"], *worker["ports"])}) == 4
    assert "details" not in json.loads(rackwright("show", path, "--node", "w1", "--json").out)


def test_the_table_of_nodes(rackwright, file):
    lines = rackwright("show", file).out.splitlines()
    assert lines[-6].split() == ["NODE", "ROLES", "ADDRESS", "SKU", "OS", "PLATFORM", "RACK", "SWITCH"]
    assert lines[-5].split() == [
        "head1",
        "head",
        "(primary)",
        "10.1.0.10",
        "cpu-16c-64g",
        "debian-13",
        "bare-metal",
        "-",
        "-",
    ]
    assert lines[-1].split() == [
        "w4",
        "worker",
        "10.1.0.14",
        "cpu-16c-64g",
        "rocky-9",
        "bare-metal",
        "r2:2",
        "s2",
    ]


def test_an_unknown_node(rackwright, file):
    result = rackwright("show", file, "--node", "w33")
    assert (result.status, result.out) == (1, "")
    assert result.err == f"error: {file} declares no node w33.\nhint: did you mean `w3`?\n"


def test_a_wrong_file(rackwright, tmp_path):
    path = tmp_path / "demo.yaml"
    path.write_text("version: 1\n")
    result = rackwright("show", path)
    assert result.status == 1
    assert result.err.startswith(f"error: {path} has 4 mistakes.\n\n{path}:1:1: cluster: ")
