"""rackwright import ansible: static inventories, INI and YAML, with their variables."""

from __future__ import annotations

import pytest

from rackwright.importers.inventory import expand_hosts
from tests.unit.importers.filling import round_trip

DEEPOPS = """\
# written for this test in the layout of DeepOps' sample inventory
[all]
mgmt01     ansible_host=10.0.0.1
login01    ansible_host=10.0.0.2   # a comment
gpu[001:196]

[slurm-master]
mgmt01

[slurm-node]
gpu[001:196]

[slurm-login]
login01

[slurm-cluster:children]
slurm-master
slurm-node

[all:vars]
ansible_user=rackadmin
ansible_ssh_private_key_file='~/.ssh/id_ed25519'
ansible_ssh_common_args='-o ProxyJump="jump@bastion.example.com:2222" -o StrictHostKeyChecking=no'
"""


@pytest.fixture
def deepops(tmp_path):
    (tmp_path / "inventory").write_text(DEEPOPS)
    for index in range(196):
        folder = tmp_path / "host_vars"
        folder.mkdir(exist_ok=True)
        rack, slot = divmod(index, 14)
        (folder / f"gpu{index + 1:03d}.yml").write_text(
            f"ansible_host: 10.0.1.{index + 10}\nrack: R{rack + 1:02d}\nrack_unit: {slot * 2 + 1}\n"
            f"service_tag: TAG{index:04d}\nbmc_ip: 10.9.1.{index + 10}\nnvidia_driver: '550'\n"
        )
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text(
        "slurm_cluster_name: deepops\ndns_domain: hpc.example.com\n"
    )
    (tmp_path / "group_vars" / "slurm-node.yml").write_text(
        "os_release: ubuntu-22.04\nmodel: DGX H100\nslurm_password: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n"
    )
    (tmp_path / "group_vars" / "slurm-master").mkdir()
    (tmp_path / "group_vars" / "slurm-master" / "secret.yml").write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    return tmp_path


def test_a_deepops_inventory_of_198_nodes(rackwright, deepops):
    out = deepops / "cluster.yaml"
    result = rackwright("import", "ansible", deepops / "inventory", "-o", out)
    assert result.status == 0, result.err
    cluster = round_trip(out, out.read_text())
    assert (cluster.name, cluster.domain, cluster.ssh.user) == ("deepops", "hpc.example.com", "rackadmin")
    assert cluster.ssh.jump_host == "jump@bastion.example.com:2222"
    assert [*cluster.by_name["mgmt01"].roles] == ["head"]
    assert [*cluster.by_name["login01"].roles] == ["login"]
    for index in range(196):
        node = cluster.by_name[f"gpu{index + 1:03d}"]
        assert str(node.address_on("management")) == f"10.0.1.{index + 10}"
        assert (node.rack, node.position) == (f"r{index // 14 + 1:02d}", index % 14 * 2 + 1)
        assert (node.serial, node.sku.name, node.os.id) == (f"TAG{index:04d}", "dgx-h100", "ubuntu-22.04")
        assert node.bmc is not None
        assert str(node.bmc.address) == f"10.9.1.{index + 10}"


def test_what_is_ignored_is_said_and_secrets_stay_closed(rackwright, deepops):
    result = rackwright("import", "ansible", deepops / "inventory")
    ignored = [line for line in result.err.splitlines() if line.startswith("ignored: ")]
    assert "ignored: group_vars/slurm-master/secret.yml: encrypted with Ansible Vault, not read" in ignored
    assert (
        "ignored: host_vars/gpu001.yml: 1 variable that a cluster file has nothing of: `nvidia_driver`"
        in ignored
    )
    assert (
        "ignored: group_vars/slurm-node.yml: 1 variable that a cluster file has nothing of: `slurm_password`"
        in ignored
    )
    assert any("only ProxyJump is taken from arguments of ssh" in line for line in ignored)
    assert "6162" not in result.out + result.err


KUBESPRAY = """\
# written for this test in the layout of Kubespray's sample inventory
all:
  vars: {ansible_user: ubuntu}
  hosts:
    node[1:3]:
    node4: {ansible_host: 10.3.0.14, ip: 10.4.0.14}
  children:
    kube_control_plane:
      hosts: {node1: {ansible_host: 10.3.0.11}, node2: {ansible_host: 10.3.0.12}}
    kube_node:
      hosts:
        node3: {ansible_host: "10.3.0.13"}
        node4:
    etcd:
      children: {kube_control_plane: }
    k8s_cluster:
      children: {kube_control_plane: {}, kube_node: {}}
"""


def test_a_kubespray_inventory(rackwright, tmp_path):
    (tmp_path / "hosts.yaml").write_text(KUBESPRAY)
    out = tmp_path / "cluster.yaml"
    result = rackwright("import", "ansible", tmp_path / "hosts.yaml", "-o", out, "--name", "k8s")
    assert result.status == 0, result.err
    assert (
        "  - nodes: node[1-2] # MISSING: the primary head of several; e.g. `primary: node1`\n"
        in out.read_text()
    )
    cluster = round_trip(out, out.read_text())
    assert {node.name: (*node.roles, str(node.address_on("management"))) for node in cluster.nodes} == {
        "node1": ("head", "10.3.0.11"),
        "node2": ("head", "10.3.0.12"),
        "node3": ("worker", "10.3.0.13"),
        "node4": ("worker", "10.3.0.14"),
    }


OMNIA = "[slurm_control_node]\nctl1 ansible_host=10.5.0.1\n[slurm_node]\nn[1:2] \n[login]\nl1 ansible_host=10.5.0.9\n"


def test_addresses_that_are_missing_are_marked_once_for_a_group(rackwright, tmp_path):
    (tmp_path / "omnia").write_text(OMNIA)
    out = tmp_path / "cluster.yaml"
    rackwright("import", "ansible", tmp_path / "omnia", "-o", out)
    assert out.read_text().count("management: # MISSING: address of the first node; the others follow") == 1
    cluster = round_trip(out, out.read_text())
    assert [str(cluster.by_name[name].address_on("management")) for name in ("n1", "n2")] == [
        "10.5.0.10",
        "10.5.0.11",
    ]


def test_no_head_is_marked_where_validate_reports_it(rackwright, tmp_path):
    (tmp_path / "hosts").write_text("[workers]\nw[1:3]\n")
    out = tmp_path / "cluster.yaml"
    rackwright("import", "ansible", tmp_path / "hosts", "-o", out)
    assert "  - nodes: w[1-3] # MISSING: a head; e.g. `roles: [head, worker]`\n" in out.read_text()


@pytest.mark.parametrize(
    ("variables", "mark"),
    [
        (
            "ansible_host={{ hostvars['x'].ip }}",
            "management: # MISSING: address of the node; h:2: ansible_host cannot be read",
        ),
        (
            "ansible_host=gpu1.example.com",
            "`gpu1.example.com`, a name, and names are not looked up; e.g. `10.1.0.11`",
        ),
        ("ansible_host=10.1.0.300", "`10.1.0.300`: not a valid IPv4 address; e.g. `10.1.0.11`"),
        ("ansible_host=fe80::1", "`fe80::1`: IPv6 addresses are not supported; e.g. `10.1.0.11`"),
    ],
)
def test_addresses_that_cannot_be_used(rackwright, tmp_path, variables, mark):
    quoted = variables.replace("{{", '"{{').replace("}}", '}}"') if "{{" in variables else variables
    (tmp_path / "h").write_text(f"[slurm-master]\nhead1 {quoted}\n")
    result = rackwright("import", "ansible", tmp_path / "h")
    assert mark in result.out
    cluster_file = tmp_path / "cluster.yaml"
    round_trip(cluster_file, result.out)


def test_precedence_of_variables(rackwright, tmp_path):
    (tmp_path / "h").write_text(
        "[all:vars]\nrack=a1\n[slurm-node]\nn1 \nn2 rack=a5\nn3 rack=a6\n[cabinet]\nn[1:3]\n[cabinet:vars]\nrack=a2\n"
    )
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all").write_text("rack: a3\n")
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "n3.json").write_text('{"rack": "a7"}')
    out = tmp_path / "c.yaml"
    rackwright("import", "ansible", tmp_path / "h", "-o", out, "--role", "cabinet=head")
    cluster = round_trip(out, out.read_text())
    assert [cluster.by_name[name].rack for name in ("n1", "n2", "n3")] == ["a3", "a5", "a7"]


def test_root_and_differing_users_are_marked(rackwright, tmp_path):
    (tmp_path / "h").write_text("[slurm-master]\nh1 ansible_user=root\n")
    assert (
        "user: # MISSING: unprivileged login on every node, with sudo; h:2 has root;"
        in rackwright("import", "ansible", tmp_path / "h").out
    )
    (tmp_path / "h").write_text("[slurm-master]\nh1 ansible_user=a\n[slurm-node]\nw1 ansible_user=b\n")
    result = rackwright("import", "ansible", tmp_path / "h")
    assert "the nodes have different ones: `a` (1 node), `b` (1 node)" in result.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[slurm-node\nn1\n", "h:1: `[slurm-node` is not a section, e.g. `[workers]`."),
        ("[a:childs]\nb\n", "h:1: A section has no kind `childs`; kinds: children, vars"),
        ("[a]\nn1 'x=1\n", "h:2: A quote is not closed on its line."),
        ("[a]\nn1 hunter2\n", "h:2: `n1`: word 1 after the host is not `variable=value`."),
        ("[a]\nn[1:x]\n", "h:2: `n[1:x]`: The ends of a range are two numbers or two lower-case letters."),
        ("[a:children]\nb\n", "h:2: Unknown group `b`; groups: a"),
        ("[a:vars]\nhunter2\n", "h:2: Expected `variable=value`."),
        (
            "10.0.0.1\n",
            "h:1: `10.0.0.1` cannot be a node's name: It is an address. Name the node, and give the address",
        ),
        ("", "No node is in it."),
    ],
)
def test_mistakes_of_ini_inventories(rackwright, tmp_path, text, message):
    (tmp_path / "h").write_text(text)
    result = rackwright("import", "ansible", tmp_path / "h")
    assert result.status == 1
    assert message in result.err
    assert "hunter2" not in result.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all: {hosts: {a: {}, a: {}}}\n", "h.yml:1: This is not YAML: the key `a` is there twice."),
        (
            "all: !!python/object/apply:os.system [id]\n",
            "h.yml:1: This is not YAML: could not determine a constructor",
        ),
        ("all: {hosts: [a]}\n", "h.yml:1: `hosts` of the group `all` is not a mapping."),
        ("a: {children: {b: {children: {a: }}}}\n", "Groups are children of each other in a circle."),
    ],
)
def test_mistakes_of_yaml_inventories(rackwright, tmp_path, text, message):
    (tmp_path / "h.yml").write_text(text)
    result = rackwright("import", "ansible", tmp_path / "h.yml")
    assert result.status == 1
    assert message in result.err


def test_programs_and_plugins_are_not_run(rackwright, tmp_path):
    script = tmp_path / "inventory.py"
    script.write_text("#!/bin/sh\ntouch ran\n")
    script.chmod(0o755)
    result = rackwright("import", "ansible", script)
    assert result.status == 1
    assert (
        "is a dynamic inventory, a program; rackwright runs none.\nhint: `ansible-inventory -i" in result.err
    )
    (tmp_path / "aws.yml").write_text("plugin: amazon.aws.aws_ec2\n")
    result = rackwright("import", "ansible", tmp_path / "aws.yml")
    assert "aws.yml: It configures an inventory plugin, which rackwright does not run." in result.err
    assert not (tmp_path / "ran").exists()


def test_ranges():
    assert expand_hosts("n[08:11]x") == ["n08x", "n09x", "n10x", "n11x"]
    assert expand_hosts("n[1:9:4]") == ["n1", "n5", "n9"]
    assert expand_hosts("db-[a:c]") == ["db-a", "db-b", "db-c"]
    assert expand_hosts("r[1:2]-n[1:2]") == ["r1-n1", "r1-n2", "r2-n1", "r2-n2"]
    with pytest.raises(ValueError, match="more than 20000 hosts"):
        expand_hosts("n[1:999999999]")


def test_the_only_controller_of_slurm_is_the_primary_of_several_heads(rackwright, tmp_path):
    (tmp_path / "h").write_text(
        "[all]\nk1 ansible_host=10.0.0.1\nk2 ansible_host=10.0.0.2\ns1 ansible_host=10.0.0.3\n"
        "[kube-master]\nk1\nk2\n[slurm-master]\ns1\n[bastion]\nb1 ansible_host=192.0.2.1\n"
    )
    out = tmp_path / "cluster.yaml"
    result = rackwright("import", "ansible", tmp_path / "h", "-o", out)
    assert "ignored: h:11: `b1` of bastion is not a node of the cluster\n" in result.err
    assert round_trip(out, out.read_text()).primary.name == "s1"


def test_a_secret_in_the_wrong_place_is_not_shown(rackwright, tmp_path):
    (tmp_path / "h").write_text("[slurm-master]\nh1 ansible_host=10.0.0.1 rack=AGE-SECRET-KEY-1QQQQQQ\n")
    result = rackwright("import", "ansible", tmp_path / "h")
    assert (
        "rack `(hidden)`: It looks like a secret: remove it from the source and treat it as leaked."
        in result.err
    )
    assert "1qq" not in (result.out + result.err).lower()
