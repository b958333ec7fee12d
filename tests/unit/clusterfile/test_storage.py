"""The section `storage:`: filesystems, servers and nodes, and what is said of mistakes, with line and hint."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.model.storage import FilesystemKind, Quota, Server
from rackwright.model.types import NetworkPurpose
from tests.unit.clusterfile.base_file import change
from tests.unit.clusterfile.fabric_files import said, section

HOME = """\
storage:
  home:
    kind: nfs
    purpose: home
    path: /home
    servers: [head1]
    export: /srv/home
"""
"""Its keys are in the lines 30 to 34; what is added is in line 35."""
ROLES = ("  munge: {}\n", "  munge: {}\n  nfs_client: {}\n  nfs_server: {}\n")
NAME, KIND, PURPOSE, PATH, SERVERS, EXPORT, ADDED = range(29, 36)
PATH_HINT = "e.g. `/home`: no slash at the end, no `..`"
NODES_HINT = "nodes: head1, w1, w2, w3, w4"
APART = "mount each on a separate path"
KNOWN = "is not a node of this cluster, an address, or a DNS name with a dot."


def loaded(folder, text=HOME, *edits):
    path = folder / "demo.yaml"
    path.write_text(change(section(text), *(edits or (ROLES,))))
    return load_cluster(path)


def local(**changes):
    keys = {"kind": "local", "purpose": "scratch", "path": "/scratch"} | changes
    return "storage:\n  s:\n" + "".join(f"    {key}: {value}\n" for key, value in keys.items())


def test_a_filesystem_with_what_is_not_written_filled_in(tmp_path):
    cluster = loaded(tmp_path)
    (home,) = cluster.storage.values()
    assert (home.name, home.kind, home.path, home.export) == (
        "home",
        FilesystemKind.NFS,
        "/home",
        "/srv/home",
    )
    assert home.servers == (Server(name="head1", address="10.1.0.10", node=True),)
    assert (home.network, home.network_purpose) == ("mgmt", NetworkPurpose.MANAGEMENT)
    assert home.nodes == ("head1", "w1", "w2", "w3", "w4")
    assert (home.automount, home.read_only, home.rdma, home.options, home.quota) == (
        True,
        False,
        False,
        (),
        None,
    )
    assert (home.min_free_percent, home.min_free_files_percent, home.stat_seconds) == (5.0, 5.0, 5.0)
    head, worker = cluster.by_name["head1"], cluster.by_name["w1"]
    assert (head.served, head.filesystems) == ((home,), (home,))
    assert (worker.served, worker.filesystems) == ((), (home,))
    assert "nfs_server" in head.options
    assert "nfs_client" not in head.options
    assert "nfs_client" in worker.options


def test_everything_that_can_be_written(tmp_path):
    text = HOME.replace("[head1]", "[nas.example.com]") + (
        "    network: store\n    options: [nconnect=16, soft]\n    read_only: true\n    automount: false\n"
        "    nodes: w[1-3]\n    roles: [worker]\n    quota: {gib: 100, users: {ada: {gib: 500}}}\n"
        "    floor: {read_gbs: 4, source: {text: measured here, read: 2026-11-20}}\n"
        "    min_free_percent: 20\n    min_free_files_percent: 1\n    stat_seconds: 2\n"
    )
    home = loaded(tmp_path, text).storage["home"]
    assert home.servers == (Server(name="nas.example.com", address="nas.example.com", node=False),)
    assert (home.network, home.network_purpose) == ("store", NetworkPurpose.STORAGE)
    assert (home.options, home.read_only, home.automount) == (("nconnect=16", "soft"), True, False)
    assert home.nodes == ("w1", "w2", "w3")
    assert home.quota is not None
    assert (home.quota.of("ada"), home.quota.of("bob").gib) == (Quota(gib=500), 100)
    assert home.floor is not None
    assert home.floor.read_gbs == 4
    assert (home.min_free_percent, home.min_free_files_percent, home.stat_seconds) == (20, 1, 2)


@pytest.mark.parametrize(("purpose", "percent"), [("software", 2.0), ("checkpoint", 10.0), ("data", 5.0)])
def test_free_space_by_purpose(tmp_path, purpose, percent):
    text = HOME.replace("purpose: home", f"purpose: {purpose}")
    assert loaded(tmp_path, text).storage["home"].min_free_percent == percent


def test_a_node_s_address_is_that_node(tmp_path):
    text = HOME.replace("[head1]", "[10.1.0.10]")
    assert loaded(tmp_path, text).storage["home"].servers == (
        Server(name="head1", address="10.1.0.10", node=True),
    )


def test_a_server_is_called_by_its_address_on_the_filesystem_s_network(tmp_path):
    edits = (ROLES, ("{mgmt: 10.1.0.10}", "{mgmt: 10.1.0.10, store: 10.2.0.10}"))
    text = HOME.replace("[head1]", "[head1]\n    network: store\n    nodes: head1")
    cluster = loaded(tmp_path, text, *edits)
    assert cluster.storage["home"].servers[0].address == "10.2.0.10"
    assert cluster.by_name["head1"].address_on("store") == IPv4Address("10.2.0.10")


def test_servers_of_several_kinds(tmp_path):
    text = (
        "storage:\n  l:\n    kind: lustre\n    purpose: scratch\n    path: /lustre\n    servers: [10.9.0.5@o2ib, "
        "mgs.example.com@tcp1]\n    fsname: lus\n    nodes: w1\n"
    )
    found = said(tmp_path, text)
    assert all("10.9.0.5" not in message and "mgs" not in message for _, message, _ in found)


def without(key):
    return "".join(line for line in HOME.splitlines(keepends=True) if f"{key}:" not in line)


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        ("  home:", "  Home!:", NAME, ("A name may contain only lower-case letters, digits and inner hyphens, at most "
         "40 characters."), None),
        ("kind: nfs", "kind: nsf", KIND, "Not one of: nfs, vast, lustre, beegfs, weka, cephfs, gpfs, local.",
         "did you mean `nfs`?"),
        ("purpose: home", "purpose: hom", PURPOSE, "Not one of: home, data, checkpoint, software, scratch, state.",
         "did you mean `home`?"),
        ("path: /home", "path: home", PATH, "'home' is not a valid absolute path.", PATH_HINT),
        ("path: /home", "path: /home/", PATH, "'/home/' is not a valid absolute path.", PATH_HINT),
        ("path: /home", "path: /ho/../me", PATH, "'/ho/../me' is not a valid absolute path.", PATH_HINT),
        ("path: /home", "path: '/ho me'", PATH, "'/ho me' is not a valid absolute path.", PATH_HINT),
        ("path: /home", "path: /var", PATH, "Cannot mount over /var.", "e.g. `/home`"),
        ("path: /home", "path: /", PATH, "'/' is not a valid absolute path.", PATH_HINT),
        ("/srv/home", "srv", EXPORT, "'srv' is not a valid absolute path.", PATH_HINT),
        ("[head1]", "[head9]", SERVERS, f"head9 {KNOWN}", "did you mean `head1`?"),
        ("[head1]", "[nas]", SERVERS, f"nas {KNOWN}", NODES_HINT),
        ("[head1]", "['a b.c']", SERVERS, f"a b.c {KNOWN}", NODES_HINT),
        ("[head1]", "['10.1.0.300']", SERVERS, "10.1.0.300 is not a valid IPv4 address.", None),
        ("[head1]", "[head1@o2ib]", SERVERS, "head1@o2ib is not a valid server.", "e.g. `10.0.0.5`"),
        ("[head1]", "[head1, 10.1.0.9]", SERVERS, "nfs takes only one server.",
         "name its floating address, or use `kind: vast`, which takes several"),
    ],
)  # fmt: skip
def test_a_key_that_is_wrong(tmp_path, old, new, line, message, hint):
    assert HOME.count(old) == 1 or old == "/srv/home"
    assert said(tmp_path, HOME.replace(old, new), ROLES) == [(line, message, hint)]


@pytest.mark.parametrize(
    ("added", "message", "hint"),
    [
        ("fsname: x", "nfs does not support `fsname`.", "remove it"),
        ("network: stor", "Network stor does not exist.", "did you mean `store`?"),
        ("rdma: true", "mgmt is ethernet, which does not support RDMA.", "e.g. `network: ib`"),
        ("nodes: w[1-9]", "Node w5 does not exist.", NODES_HINT),
        ("nodes: 'w[1-'", "Unbalanced brackets in the range.", "e.g. `gpu[001-128]`"),
        ("roles: []", "The list is empty.", None),
        ("automount: maybe", "Expected true or false.", "write `true` or `false`"),
        ("options: [nconect=8]", "`nconect` is not a mount option of nfs.", "did you mean `nconnect`?"),
        ("options: [nconnect=17]", "`nconnect` must be a number from 1 to 16.", None),
        ("options: [nconnect]", "`nconnect` needs a value.", "write `nconnect=...`"),
        ("options: [rsize=10]", "`rsize` must be a number from 1024 to 67108864.", None),
        ("options: [hard=1]", "`hard` takes no value.", "write `hard`"),
        ("options: [soft, hard]", "`hard` contradicts `soft`.", "keep one of them"),
        ("options: [atime, noatime]", "`noatime` contradicts `atime`.", "keep one of them"),
        ("options: [hard, hard]", "`hard` is set twice.", None),
        ("options: [ro]", "`ro` cannot be set in `options`.", "write `read_only: true`"),
        ("options: [proto=rdma]", "`proto=rdma` cannot be set in `options`.", "write `rdma: true`"),
        ("options: [tcp]", "`tcp` cannot be set in `options`.",
         "NFS uses TCP; write `rdma: true` for RDMA"),
        ("options: [x-systemd.automount]", "`x-systemd.automount` cannot be set in `options`.",
         "a mount unit ignores fstab options: use the filesystem's keys"),
        ("options: ['a b']", "'a b' is not a valid mount option.", "e.g. `nconnect=8`; one item per option"),
        ("quota: {}", "A quota needs `gib`, `files` or both.", "e.g. `quota: {gib: 100, files: 1000000}`"),
        ("quota: {gib: 0}", "The number must be at least 1.", None),
        ("quota: {users: {ada: {users: {bob: {gib: 1}}}}}", "The limits of one user cannot contain `users`.", None),
        ("floor: {}", "A floor needs at least one rate.", "e.g. `floor: {read_gbs: 4, write_gbs: 2}`"),
        ("floor: {read_gbs: 4}", "A floor needs a `source`.",
         "e.g. `source: {text: DGX SuperPOD H100 RA, table 6, read: 2026-11-20}`"),
        ("stat_seconds: 0", "The number must be more than 0.", None),
        ("min_free_percent: 99", "The number must be at most 90.", None),
    ],
)  # fmt: skip
def test_a_key_that_is_added(tmp_path, added, message, hint):
    assert said(tmp_path, f"{HOME}    {added}\n", ROLES) == [(ADDED, message, hint)]


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        (without("export"), NAME, "nfs needs `export`.", "e.g. `export: /srv/home`"),
        (without("servers"), NAME, "nfs needs `servers`.", "e.g. `servers: [head1]`"),
        (HOME + "    roles: [login]\n", NAME, "No node mounts this filesystem.", "extend `nodes` or `roles`"),
        (HOME + "    network: ib\n", SERVERS, "head1 has no address on ib.",
         "add one to its group, e.g. `addresses: {ib: ...}`"),
        (local(), 32, "No role creates a filesystem on /scratch of head1,w[1-4].",
         "declare it under `roles.storage_layout.filesystems`, e.g. `/scratch: {on: scratch}`"),
        (local(purpose="state"), 30, "A local filesystem cannot hold state that heads share.", "e.g. `kind: nfs`"),
        (local(options="[noatime]"), 33, "A local filesystem cannot set mount options here.",
         "set `mount_options` of the role storage_layout"),
        ("storage:\n  l:\n    kind: lustre\n    purpose: data\n    path: /l\n    servers: [10.9.0.5@ib0]\n    fsname: l\n",
         33, "10.9.0.5@ib0 is not a valid server.", "e.g. `10.0.0.5@o2ib`"),
        ("storage: [1]\n", 28, "Expected a mapping.", "write `key: value` lines below it"),
    ],
)  # fmt: skip
def test_what_is_missing_or_does_not_fit(tmp_path, text, line, message, hint):
    assert said(tmp_path, text, ROLES)[0] == (line, message, hint)


def test_a_server_s_address_on_another_network(tmp_path):
    """Its export and its firewall are for the network of the filesystem."""
    address = ("{mgmt: 10.1.0.10}", "{mgmt: 10.1.0.10, store: 10.2.0.10}")
    there = HOME.replace("[head1]", "[10.2.0.10]")
    wrong = "10.2.0.10 is an address of head1, but not on mgmt."
    hint = "declare `network: store`, or write `servers: [head1]`"
    assert (SERVERS, wrong, hint) in said(tmp_path, there, ROLES, address)
    mistakes = [message for _, message, _ in said(tmp_path, f"{there}    network: store\n", ROLES, address)]
    assert not any("another network" in one for one in mistakes)


def test_a_server_named_twice(tmp_path):
    found = said(tmp_path, HOME.replace("[head1]", "[head1, head1]"), ROLES)
    assert (SERVERS, "head1 is listed twice.", None) in found


def second(path, export="/srv/data"):
    text = (
        HOME.removeprefix("storage:\n").replace("  home:", "  data:").replace("path: /home", f"path: {path}")
    )
    return HOME + text.replace("/srv/home", export)


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        (
            "/home",
            "/home is also the path of home (line 32) on head1,w[1-4].",
            "use a separate path for each",
        ),
        (
            "/home/data",
            (
                "/home/data is nested with /home of home (line 32) on head1,w[1-4]: while the outer one is unmounted, the inner one is too."
            ),
            "mount each on a separate path, and use a symlink",
        ),
    ],
)
def test_two_filesystems_in_each_other_s_way(tmp_path, path, message, hint):
    assert said(tmp_path, second(path), ROLES) == [(38, message, hint)]
    apart = second(path).replace("  data:\n", "  data:\n    nodes: w1\n")
    assert said(tmp_path, apart.replace("  home:\n", "  home:\n    nodes: w2\n"), ROLES) == []


@pytest.mark.parametrize(
    ("roles", "found"),
    [
        ("", [(KIND, "No role mounts nfs on w[1-4].", "add `nfs_client: {}` under `roles`"),
              (SERVERS, "No role serves nfs on head1.", "add `nfs_server: {}` under `roles`")]),
        ("  nfs_server: {}\n", [(KIND, "No role mounts nfs on w[1-4].", "add `nfs_client: {}` under `roles`")]),
        ("  nfs_client: {}\n", [(SERVERS, "No role serves nfs on head1.", "add `nfs_server: {}` under `roles`")]),
    ],
)  # fmt: skip
def test_roles_that_are_missing(tmp_path, roles, found):
    assert said(tmp_path, HOME, ("  munge: {}\n", f"  munge: {{}}\n{roles}")) == found


def test_a_role_with_mistakes_is_not_missing(tmp_path):
    edit = ("  munge: {}\n", "  munge: {}\n  nfs_client: {}\n  nfs_server: {threads: many}\n")
    [(_, message, _)] = said(tmp_path, HOME, edit)
    assert "nfs" not in message


def test_a_server_that_no_role_serves_is_named_by_address(tmp_path):
    edit = ("  munge: {}\n", "  munge: {}\n  nfs_client: {}\n")
    assert said(tmp_path, HOME.replace("[head1]", "[10.1.0.99]"), edit) == []


def drives(path):
    text = (
        "  munge: {}\n  nfs_client: {}\n  nfs_server: {}\n  storage_layout:\n    disks: {a: {slot: '0000:01:00.0'}}\n"
        f"    filesystems: {{{path}: {{on: a}}}}\n"
    )
    return ("  munge: {}\n", text)


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        (HOME, "/home/scratch", APART),
        (HOME, "/home", f"export it in place, `export: /home`, or {APART}"),
    ],
)
def test_a_path_on_a_node_s_own_drives(tmp_path, text, path, hint):
    """On the server too: the export and the filesystem would have one mount unit."""
    message = f"/home conflicts with {path}, which head1 mounts from its local drives."
    assert said(tmp_path, text, drives(path)) == [(PATH, message, hint)]


def test_a_server_may_export_a_filesystem_of_its_own_drives(tmp_path):
    only_head = HOME + "    nodes: head1\n"
    assert said(tmp_path, only_head.replace("/srv/home", "/home"), drives("/home")) == []
    assert said(tmp_path, only_head, drives("/srv")) == []
    clients = said(tmp_path, HOME.replace("/srv/home", "/home"), drives("/home"))
    assert clients == [(PATH, "/home conflicts with /home, which w1 mounts from its local drives.", APART)]


def test_an_empty_section_declares_nothing(tmp_path):
    assert loaded(tmp_path, "storage: {}\n").storage == {}
