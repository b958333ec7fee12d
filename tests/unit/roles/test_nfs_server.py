"""The nfs_server role: threads, exports, mistakes of its section, files and what it does about state."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.cluster import LabSize
from rackwright.model.services import Listener
from rackwright.model.types import NetworkPurpose, Platform
from rackwright.roles.nfs_server import texts
from rackwright.roles.nfs_server.options import DROP_IN, NfsServerOptions, filesystem_below
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.nfs_sites import ARRAY, nfs, on_storage, served
from tests.unit.roles.sites import GPU_SKU, head, worker

UUID = "fsid=e8a0d08f-4d9d-5cb4-a83c-31a6b7f2a6b0"
HEADER = "# Written by rackwright from the cluster file; changes made here are undone.\n"
DATA = nfs(name="data", path="/data", export="/data", purpose="data")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "Input should be greater than or equal to 1"),
        ({"modes": {"home": "rwx"}}, "String should match pattern '^[0-7]{3,4}$'"),
        ({"root_access": {"home": "gpu[1-"}}, "home: Unbalanced brackets in the range."),
        (
            {"grace_seconds": 30},
            (
                "`grace_seconds` is 30, less than a lease of 90 s: a client may not have noticed that the server was away."
            ),
        ),
        (
            {"lease_seconds": 3600},
            "`grace_seconds` is 90 by default, less than a lease of 3600 s: a client may not have noticed that the server was",
        ),
    ],
)
def test_refused(options, message):
    assert errors_in(NfsServerOptions, options)[0].startswith(message)


def test_a_short_grace_takes_a_short_lease():
    assert NfsServerOptions(grace_seconds=30, lease_seconds=30).grace_seconds == 30
    assert NfsServerOptions(lease_seconds=20).grace_seconds is None


def sized(cores, memory_mib):
    sku = GPU_SKU.model_copy(update={"sockets": 1, "cores_per_socket": cores, "memory_mib": memory_mib})
    return head(served(nfs(), sku=sku)).model_copy(update={"sku": sku})


@pytest.mark.parametrize(
    ("cores", "memory_mib", "threads"),
    [(2, 1024, 32), (2, 2048, 64), (4, 65536, 64), (16, 65536, 128), (128, 1048576, 1024), (1, 128, 8)],
)
def test_threads_come_from_cores_and_memory(cores, memory_mib, threads):
    assert NfsServerOptions().thread_count(sized(cores, memory_mib)) == threads
    assert NfsServerOptions(threads=5).thread_count(sized(cores, memory_mib)) == 5


def test_a_lab_s_node_has_the_threads_of_its_size():
    node = sized(128, 1048576).model_copy(
        update={"platform": Platform.VM, "lab": LabSize(cpus=2, memory_mib=1536)}
    )
    assert NfsServerOptions().thread_count(node) == 48


def exports(*filesystems, server=None, **changes):
    cluster = served(*filesystems, server=server, **changes)
    text = texts.exports(cluster, head(cluster), server or NfsServerOptions())
    assert text.startswith(HEADER)
    return text.removeprefix(HEADER).splitlines()


def fsid(line):
    return next(word for word in line.replace("(", ",").split(",") if word.startswith("fsid="))


def test_an_export_is_for_its_network_and_squashes_root():
    (line,) = exports(nfs())
    assert line == f"/srv/home 10.9.0.0/24(rw,sync,root_squash,no_subtree_check,{fsid(line)},sec=sys)"


def test_root_keeps_its_rights_on_declared_nodes_alone():
    (line,) = exports(nfs(), server=NfsServerOptions(root_access={"home": "gpu[1-2]"}))
    rest = f"no_subtree_check,{fsid(line)},sec=sys)"
    assert line == (
        f"/srv/home 10.9.0.11(rw,sync,no_root_squash,{rest} 10.9.0.12(rw,sync,no_root_squash,{rest} "
        f"10.9.0.0/24(rw,sync,root_squash,{rest}"
    )


def test_each_export_has_an_identity_of_its_own_that_stays():
    first, second = exports(nfs(), DATA)
    assert fsid(first) != fsid(second)
    assert exports(DATA)[0] == second


def test_options_of_the_filesystem_decide_how_clients_prove_who_they_are():
    (line,) = exports(nfs(read_only=True, options=("sec=krb5p", "xprtsec=mtls")))
    assert line.endswith(f"(ro,sync,root_squash,no_subtree_check,{fsid(line)},sec=krb5p,xprtsec=mtls)")


def test_clients_may_use_any_port_where_that_is_declared():
    first, second = exports(nfs(options=("noresvport",)), DATA)
    assert "(rw,sync,insecure,root_squash," in first
    assert "insecure" not in second


def test_what_is_below_a_mount_point_is_exported_only_while_that_is_mounted():
    (line,) = exports(nfs(), others={"storage_layout": ARRAY})
    assert ",mountpoint=/srv,sec=sys)" in line
    cluster = served(nfs(), others={"storage_layout": ARRAY})
    assert filesystem_below(head(cluster), "/srv/home") == "/srv"
    assert filesystem_below(head(cluster), "/srvs") is None


def test_a_mount_that_is_missing_ends_no_other_export():
    """The server only waits for what `mountpoint=` guards, and requires what the site mounts itself."""
    elsewhere = nfs(name="data", path="/data", export="/elsewhere/data", purpose="data")
    cluster = served(nfs(), nfs(name="soft", export="/srv/soft"), elsewhere, others={"storage_layout": ARRAY})
    options = head(cluster).options["nfs_server"]
    settings = [line for line in texts.drop_in(head(cluster), options).splitlines() if line[0] != "#"]
    assert settings == ["[Unit]", "Wants=srv.mount", "After=srv.mount", "RequiresMountsFor=/elsewhere/data"]
    assert DROP_IN.endswith("/nfs-server.service.d/order-with-mounts.conf")  # the name of nfs-utils' own


def problems(*filesystems, server=None, **changes):
    cluster = served(*filesystems, server=server, **changes)
    return list(head(cluster).options["nfs_server"].problems(cluster))


def test_nothing_is_wrong_with_the_usual_declaration():
    assert (
        problems(nfs(), DATA, server=NfsServerOptions(root_access={"home": "gpu1"}, modes={"data": "770"}))
        == []
    )


@pytest.mark.parametrize(
    ("filesystems", "server", "trouble"),
    [
        (
            (nfs(export="/"),),
            None,
            ("", "home exports the whole disk of head1.", "e.g. `export: /srv/home`"),
        ),
        (
            (nfs(), nfs(name="data", path="/data")),
            None,
            (
                "",
                "home and data export the same folder of head1, /srv/home.",
                "export each from a separate folder",
            ),
        ),
        (
            (nfs(export="/home/all"),),
            None,
            (
                "",
                "head1 uses home at /home, but /home/all is in its way.",
                "export it from elsewhere, e.g. /srv/home, or from /home itself",
            ),
        ),
        (
            (nfs(network="storage"),),
            {"root_access": {"home": "gpu1"}},
            None,
        ),
        (
            (nfs(quota={"gib": 10}),),
            None,
            None,
        ),
        (
            (nfs(quota={"gib": 10}, purpose="data"),),
            None,
            (
                "",
                "home has a user quota, which is set only on filesystems of purpose home.",
                "remove `quota`, or limit its size by a volume of `storage_layout`",
            ),
        ),
        (
            (nfs(),),
            {"root_access": {"hom": "gpu1"}},
            ("root_access.hom", "No node serves hom with these options.", "did you mean `home`?"),
        ),
        (
            (nfs(),),
            {"root_access": {"home": "gpu9"}},
            ("root_access.home", "There is no node gpu9.", "did you mean `gpu1` or `gpu2`?"),
        ),
        (
            (nfs(network="storage", nodes=("gpu1",)),),
            {"root_access": {"home": "head1"}},
            ("root_access.home", "head1 has no address on storage.", None),
        ),
        (
            (nfs(),),
            {"modes": {"homes": "700"}},
            ("modes.homes", "No node serves homes with these options.", "did you mean `home`?"),
        ),
    ],
)
def test_mistakes_that_the_cluster_shows(filesystems, server, trouble):
    found = problems(*filesystems, server=NfsServerOptions.model_validate(server or {}))
    assert found == ([] if trouble is None else [trouble])


@pytest.mark.parametrize("option", ["vers=3", "nfsvers=3"])
def test_nfsv3_is_not_served(option):
    assert problems(nfs(options=(option, "nolock"))) == [
        (
            "",
            "home is mounted with NFSv3, but nfs_server serves only 4.1 and 4.2.",
            "remove it from `storage.home.options`, or declare e.g. `vers=4.2`",
        )
    ]


@pytest.mark.parametrize(
    ("changes", "listens"),
    [({"options": ("port=2050",)}, 2049), ({"options": ("port=2049",), "rdma": True}, 20049)],
)
def test_the_server_listens_on_one_port(changes, listens):
    option = changes["options"][0]
    assert problems(nfs(**changes)) == [
        (
            "",
            f"home is mounted from port {option.partition('=')[2]}, but nfs_server listens on {listens}.",
            f"remove `{option}` from `storage.home.options`",
        )
    ]
    assert problems(nfs(options=("port=2049",))) == problems(nfs(options=("port=20049",), rdma=True)) == []


def test_a_client_without_an_address_on_the_network_would_be_refused():
    cluster = served(nfs(network="storage", nodes=("head1", "gpu1", "gpu2")), extra=on_storage("head1", 10))
    assert list(head(cluster).options["nfs_server"].problems(cluster)) == []
    bare = served(nfs(network="elsewhere"))
    assert list(head(bare).options["nfs_server"].problems(bare)) == [
        (
            "",
            "home is exported to elsewhere, where gpu[1-2] has no address.",
            "declare another `network` of home, or addresses, or fewer `nodes`",
        )
    ]


def test_the_role_that_mounts_a_folder_decides_its_mode():
    home = nfs(export="/srv")
    assert problems(
        home, server=NfsServerOptions(modes={"home": "700"}), others={"storage_layout": ARRAY}
    ) == [
        (
            "modes.home",
            "The role that makes the filesystem of /srv decides its mode.",
            "declare `mode` there, e.g. under `roles.storage_layout.filesystems`",
        )
    ]
    cluster = served(home, others={"storage_layout": ARRAY})
    names = [operation.name for operation in planned(cluster, head(cluster)).operations]
    assert "Create the folder for home" not in names


def test_a_container_serves_nothing():
    assert problems(nfs(), platform=Platform.CONTAINER) == [
        (
            "",
            "nfs_server cannot run on head1: a container neither mounts nor serves network filesystems.",
            "remove the role from such nodes",
        )
    ]


def test_servers_go_first_and_listen_on_the_filesystem_s_network():
    cluster = served(nfs(), nfs(name="data", path="/data", export="/srv/data", network_purpose="storage"))
    options = head(cluster).options["nfs_server"]
    assert options.goes_first(head(cluster))
    assert not NfsServerOptions().goes_first(worker(cluster))
    assert "nfs_server" not in worker(cluster).options
    both = frozenset({NetworkPurpose.MANAGEMENT, NetworkPurpose.STORAGE})
    assert options.listeners(head(cluster)) == (Listener("kernel", (2049, 2049), purposes=both),)


def test_the_files():
    cluster = served(nfs(), DATA)
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    assert content(plan, texts.CONF) == (
        f"{HEADER}[nfsd]\nthreads=64\nudp=n\ntcp=y\nvers2=n\nvers3=n\nvers4=y\nvers4.0=n\nvers4.1=y\nvers4.2=y\n\n"
        "[mountd]\nmanage-gids=y\n"
    )
    assert content(plan, DROP_IN) == (
        f"{HEADER}[Unit]\n# In place of nfs-utils' own drop-in of this name.\n"
        "RequiresMountsFor=/srv/home\nRequiresMountsFor=/data\n"
    )
    assert content(plan, "/etc/systemd/system/home.mount") == (
        f"{HEADER}[Unit]\nDescription=/home (nfs home, served from here)\nX-Rackwright-Purpose=home\n"
        "RequiresMountsFor=/srv/home\n\n"
        "[Mount]\nWhat=/srv/home\nWhere=/home\nType=none\nOptions=bind\n\n[Install]\nWantedBy=local-fs.target\n"
    )
    options = head(cluster).options["nfs_server"]
    assert options.unit_files(head(cluster)) == (
        DROP_IN,
        "/etc/systemd/system/home.mount",
    )
    assert commands(plan, "Create the folder for home") == (
        "mkdir -p /srv/home && chown root:root /srv/home && chmod 755 /srv/home",
    )
    assert commands(plan, "Create the folder for data")[0].endswith("chmod 1777 /data")
    names = [operation.name for operation in plan.operations]
    assert names.index("Mask rpcbind.socket") < names.index("Install the NFS server")
    assert names.index("Start the NFS server with its settings") < names.index("Export the declared folders")
    assert names[-1] == "Mount /srv/home on /home"


def test_rdma_lease_grace_and_groups_are_in_the_settings():
    options = NfsServerOptions(lease_seconds=20, grace_seconds=25, groups_of_server=False, threads=3)
    text = texts.conf(head(served(nfs(rdma=True), server=options)), options)
    assert text == (
        f"{HEADER}[nfsd]\nthreads=3\nudp=n\ntcp=y\nvers2=n\nvers3=n\nvers4=y\nvers4.0=n\nvers4.1=y\nvers4.2=y\nrdma=y\n"
        "rdma-port=20049\nlease-time=20\ngrace-time=25\n\n[mountd]\nmanage-gids=n\n"
    )


ETAB = (
    "/srv/home\t10.9.0.11(rw,sync,wdelay,hide,nocrossmnt,secure,no_root_squash,no_all_squash,no_subtree_check,"
    "secure_locks,acl,no_pnfs,{fsid},anonuid=65534,anongid=65534,sec=sys,rw,no_root_squash,no_all_squash)\n"
    "/srv/home\t10.9.0.0/24(rw,sync,wdelay,hide,nocrossmnt,secure,root_squash,no_all_squash,no_subtree_check,"
    "secure_locks,acl,no_pnfs,{fsid},anonuid=65534,anongid=65534,sec=sys,rw,root_squash,no_all_squash)\n"
)
"""As exportfs of nfs-utils 2.6.2 (Debian 12) wrote it from our file, run without a kernel server, 2026-11-26."""


def shell(script, tmp_path, etab):
    (tmp_path / "etab").write_text(etab)
    script = script.replace(texts.ETAB, str(tmp_path / "etab"))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=20)
    return done.returncode, done.stdout.rstrip("\n")


def test_the_shell_reads_what_exportfs_writes(tmp_path):
    options = NfsServerOptions(root_access={"home": "gpu1"})
    cluster = served(nfs(), server=options)
    wanted = texts.in_force(cluster, head(cluster), options)
    etab = ETAB.format(fsid=fsid(wanted.replace(" ", ",")))
    assert shell(texts.read_exports(), tmp_path, etab) == (0, wanted)
    other = etab + "/opt/x\t*(ro,sync,root_squash,no_subtree_check,sec=sys)\n"
    assert shell(texts.read_declared(("/srv/home",)), tmp_path, other) == (0, wanted)
    assert shell(texts.read_exports(), tmp_path, other)[1].startswith("/opt/x * ro sync root_squash")
    open_to_root = etab.replace("root_squash", "no_root_squash").replace("no_no_", "no_")
    assert shell(texts.read_exports(), tmp_path, open_to_root)[1] != wanted


@pytest.mark.parametrize(
    ("usual", "hand_made"),
    [
        ("anonuid=65534", "anonuid=0"),
        ("anongid=65534", "anongid=0"),
        ("no_all_squash,no_subtree", "all_squash,no_subtree"),
        (",secure,", ",insecure,"),
        (",nocrossmnt,", ",crossmnt,"),
        ("sec=sys,", "sec=krb5p,rw,root_squash,no_all_squash,sec=sys,"),
        ("root_squash,no_all_squash)", "no_root_squash,no_all_squash)"),
    ],
)
def test_an_export_that_was_widened_by_hand_is_another_one(tmp_path, usual, hand_made):
    cluster = served(nfs())
    wanted = texts.in_force(cluster, head(cluster), NfsServerOptions())
    etab = ETAB.splitlines(keepends=True)[1].format(fsid=fsid(wanted.replace(" ", ",")))
    # with a kernel server the flags of sec= have the port's too (NFSEXP_SECINFO_FLAGS)
    with_kernel = etab.replace("sec=sys,rw,", "sec=sys,rw,secure,")
    assert shell(texts.read_exports(), tmp_path, with_kernel) == (0, wanted)
    assert usual in etab
    code, printed = shell(texts.read_exports(), tmp_path, etab.replace(usual, hand_made))
    assert (code, printed == wanted) == (0, False)


def test_the_shell_reads_what_is_declared_besides(tmp_path):
    cluster = served(nfs(options=("noresvport", "xprtsec=mtls")))
    wanted = texts.in_force(cluster, head(cluster), NfsServerOptions())
    etab = ETAB.splitlines(keepends=True)[1].format(fsid=fsid(wanted.replace(" ", ",")))
    there = etab.replace(",secure,", ",insecure,").replace(")\n", ",xprtsec=mtls)\n")
    assert shell(texts.read_exports(), tmp_path, there) == (0, wanted)
    for wrong in (etab.replace(",secure,", ",insecure,"), there.replace("insecure", "secure")):
        assert shell(texts.read_exports(), tmp_path, wrong)[1] != wanted


def test_the_shell_fails_where_there_is_nothing_to_read(tmp_path):
    done = subprocess.run(
        ["sh", "-c", texts.read_exports().replace(texts.ETAB, str(tmp_path / "none"))],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (done.returncode, done.stdout) == (3, "")
