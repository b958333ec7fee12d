"""The nfs_client role: mount options by purpose and which of them the kernel shows, mistakes, files, checks."""

from __future__ import annotations

import pytest

from rackwright.model.storage import Server
from rackwright.model.types import Platform
from rackwright.mounts import mount_text
from rackwright.osfamily.known import RELEASES
from rackwright.roles.nfs_client import texts
from rackwright.roles.nfs_client.mount_options import options, remote_ports, shown
from rackwright.roles.nfs_client.options import NfsClientOptions
from rackwright.roles.nfs_client.verify import CHECKS
from tests.factories import DEBIAN_13
from tests.unit.roles.fake_facts import answer, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.nfs_sites import OUTSIDE, nfs, served
from tests.unit.roles.sites import head, worker

USUAL = (
    "vers=4.2,proto=tcp,nconnect=8,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noatime,nodev,nosuid"
)


def given(**changes):
    return ",".join(options(nfs(**changes), 8, 1024))


@pytest.mark.parametrize("purpose", ["home", "data", "checkpoint", "scratch", "state"])
def test_what_users_write_is_mounted_hard_and_without_setuid(purpose):
    assert given(purpose=purpose) == USUAL


def test_software_keeps_setuid_and_gives_up_only_where_it_is_read_alone():
    assert given(purpose="software") == USUAL.removesuffix(",nosuid")
    assert given(purpose="software", read_only=True) == (
        "vers=4.2,proto=tcp,nconnect=8,rsize=1048576,wsize=1048576,softerr,timeo=600,retrans=4,nocto,actimeo=120,"
        "noatime,nodev"
    )


def test_rdma_has_its_port_and_one_connection():
    assert given(rdma=True, network="fabric").startswith("vers=4.2,proto=rdma,port=20049,rsize=")


@pytest.mark.parametrize(
    ("declared", "gone", "there"),
    [
        (("vers=4.1",), "vers=4.2", "vers=4.1"),
        (("nfsvers=4.1",), "vers=4.2", "nfsvers=4.1"),
        (("soft",), "hard", "soft"),
        (("softerr", "retrans=5"), "retrans=2", "retrans=5"),
        (("relatime",), "noatime", "relatime"),
        (("suid",), "nosuid", "suid"),
        (("nconnect=16",), "nconnect=8", "nconnect=16"),
    ],
)
def test_declared_options_win(declared, gone, there):
    words = given(options=declared).split(",")
    assert there in words
    assert gone not in words


def test_a_declared_cache_time_wins_over_that_of_software():
    words = given(purpose="software", read_only=True, options=("acregmax=30",)).split(",")
    assert "acregmax=30" in words
    assert "actimeo=120" not in words
    assert "cto" in given(purpose="software", read_only=True, options=("cto",)).split(",")


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ((), {"vers": "4.2", "proto": "tcp", "nconnect": "8", "hard": None, "timeo": "600", "retrans": "2",
              "noatime": None, "nodev": None, "nosuid": None}),
        (("nconnect=1", "vers=4"), {"proto": "tcp", "hard": None, "timeo": "600", "retrans": "2",
                                    "noatime": None, "nodev": None, "nosuid": None}),
    ],
)  # fmt: skip
def test_what_the_kernel_shows(declared, expected):
    fs = nfs(options=declared)
    assert shown(fs, options(fs, 8, 1024)) == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("sec=krb5p", {"sec": "krb5p"}),
        ("sec=krb5:krb5p", {}),
        ("xprtsec=tls", {"xprtsec": "tls"}),
        ("actimeo=60", {"acregmin": "60", "acdirmin": "60"}),
        ("actimeo=120", {"acregmin": "120", "acregmax": "120", "acdirmin": "120", "acdirmax": "120"}),
        ("acregmin=3", {}),
        ("acregmin=7", {"acregmin": "7"}),
        ("lookupcache=positive", {"lookupcache": "pos"}),
        ("lookupcache=all", {}),
        ("max_connect=4", {"max_connect": "4"}),
        ("port=2049", {}),
        ("port=20490", {"port": "20490"}),
        ("rsize=65536", {}),
        ("nofsc", {}),
        ("write=eager", {"write": "eager"}),
        ("write=lazy", {}),
        ("xprtsec=none", {}),
        ("sec=none", {"sec": "null"}),
        ("noac", {"noac": None}),
    ],
)
def test_only_what_is_shown_for_certain_is_demanded(option, expected):
    assert shown(nfs(), (option,)) == expected


def test_the_address_of_the_server_and_the_type():
    mount = NfsClientOptions().mount_of(worker(served(nfs())), nfs())
    assert (mount.what, mount.type) == ("10.9.0.10:/srv/home", "nfs4")
    third = nfs(options=("vers=3", "nolock"))
    assert NfsClientOptions().mount_of(worker(served(third)), third).type == "nfs"


def test_vast_spreads_a_mount_over_its_servers():
    servers = tuple(Server(name=f"10.5.0.{n}", address=f"10.5.0.{n}", node=False) for n in (1, 2, 3, 9))
    vast = nfs(kind="vast", servers=servers, export="/data")
    assert ",".join(options(vast, 8, 1024)).startswith(
        "vers=4.1,proto=tcp,remoteports=10.5.0.1-10.5.0.3~10.5.0.9,spread_reads,spread_writes,nconnect=8,"
    )
    assert "nconnect" not in shown(vast, options(vast, 8, 1024))
    assert "remoteports" not in ",".join(options(nfs(kind="vast", servers=servers[:1]), 8, 1024))


def test_names_are_asked_of_dns():
    assert remote_ports(["vip1.example.com", "10.5.0.1"]) == "dns"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"connections": 17}, "Input should be less than or equal to 16"),
        ({"slots": 1}, "Input should be greater than or equal to 2"),
        ({"transfer_kib": 1}, "Input should be greater than or equal to 4"),
    ],
)
def test_refused(options, message):
    assert errors_in(NfsClientOptions, options) == [message]


def problems(*filesystems, client=None, **changes):
    cluster = served(*filesystems, client=client, **changes)
    return list(worker(cluster).options["nfs_client"].problems(cluster))


def test_nothing_is_wrong_with_the_usual_declaration():
    assert problems(nfs(), nfs(name="data", path="/data", export="/srv/data", purpose="data")) == []


def test_a_container_mounts_nothing():
    assert problems(nfs(), platform=Platform.CONTAINER) == [
        (
            "",
            "gpu1 cannot mount home: a container neither mounts nor serves network filesystems.",
            "remove it from `storage.home.nodes`",
        )
    ]


def test_versions_that_need_ports_on_every_client_are_refused():
    assert problems(nfs(options=("vers=3",))) == [
        (
            "",
            "home is mounted with NFSv3, whose locks need rpcbind and rpc.statd; both are masked.",
            "use `vers=4.1` or `vers=4.2`, or declare `nolock`: locks are then local to each node",
        )
    ]
    assert problems(nfs(options=("vers=3", "nolock"))) == []
    assert problems(nfs(options=("vers=4.0",))) == [
        (
            "",
            "home is mounted with NFSv4.0, for which clients open a listening port.",
            "use `vers=4.1` or `vers=4.2`",
        )
    ]
    assert problems(nfs(options=("minorversion=0",)))[0][1].startswith("home is mounted with NFSv4.0,")


def test_mounts_of_one_server_share_its_connections():
    data = nfs(name="data", path="/data", export="/srv/data", options=("nconnect=16",))
    assert problems(nfs(), data) == [
        (
            "",
            (
                "home and data share the connections to 10.9.0.10, with nconnect=8 and nconnect=16: the one "
                "mounted first decides for both."
            ),
            "declare the same `nconnect` for both",
        )
    ]
    other = Server(name="10.9.0.99", address="10.9.0.99", node=False)
    assert problems(nfs(), data.model_copy(update={"servers": (other,)})) == []


def test_connections_are_shared_on_each_node_alone():
    """Workers mount data with more connections, login nodes home with the default: no client has both."""
    data = nfs(name="data", path="/data", export="/srv/data", options=("nconnect=16",), nodes=("gpu1",))
    assert problems(nfs(nodes=("gpu2",)), data) == []
    both = nfs(nodes=("gpu1", "gpu2"))
    more = data.model_copy(update={"nodes": ("gpu1", "gpu2")})
    assert [message.partition(",")[0] for _, message, _ in problems(both, more)] == [
        "home and data share the connections to 10.9.0.10"
    ]


@pytest.mark.parametrize(
    ("options", "shares"),
    [
        (("nfsvers=4.2", "nconnect=16"), True),
        (("vers=4", "nconnect=16"), True),
        (("nfsvers=4", "minorversion=2", "nconnect=16"), True),
        (("proto=tcp6", "nconnect=16"), True),
        (("port=2049", "nconnect=16"), True),
        (("nfsvers=4.1", "nconnect=16"), False),
        (("minorversion=1", "nconnect=16"), False),
        (("xprtsec=tls", "nconnect=16"), False),
        (("port=2050", "nconnect=16"), False),
    ],
)
def test_what_mounts_with_the_same_connections_have_in_common(options, shares):
    data = nfs(name="data", path="/data", export="/srv/data", options=options)
    assert bool(problems(nfs(), data)) is shares


@pytest.mark.parametrize("option", ["noresvport", "max_connect=4"])
def test_what_the_first_mount_decides_besides_is_the_same_too(option):
    data = nfs(name="data", path="/data", export="/srv/data", options=(option,))
    name = option.partition("=")[0]
    assert problems(nfs(), data) == [
        (
            "",
            (
                f"home and data share the connections to 10.9.0.10, with and without {name}: the one mounted "
                "first decides for both."
            ),
            f"declare the same `{name}` for both, or for neither",
        )
    ]
    assert problems(nfs(options=(option,)), data) == []


def test_several_servers_of_vast_take_its_client():
    servers = tuple(Server(name=f"10.5.0.{n}", address=f"10.5.0.{n}", node=False) for n in (1, 2))
    vast = nfs(name="data", kind="vast", servers=servers)
    assert problems(vast) == [
        (
            "vast_packages",
            "data has 2 servers, but the kernel's own client mounts from one.",
            "e.g. `vast_packages: {vastnfs-dkms: 4.0.34}`, from a mirror of the site",
        )
    ]
    client = NfsClientOptions(vast_packages={"vastnfs-dkms": "4.0.34"})
    cluster = served(vast, client=client)
    assert problems(vast, client=client) == []
    assert client.held_packages(worker(cluster)) == ("vastnfs-dkms",)
    assert "vastnfs-dkms=4.0.34" in commands(planned(cluster, worker(cluster)), "Install VAST's client")[0]
    assert "VAST's client is installed and held" in claimed("nfs_client", CHECKS, worker(cluster))


def test_it_runs_where_something_is_mounted():
    cluster = served(nfs(nodes=("head1", "gpu1")))
    assert [node.name for node in cluster.running("nfs_client")] == ["gpu1"]


def test_the_files():
    cluster = served(nfs())
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert content(plan, "/etc/systemd/system/home.mount") == (
        "# Written by rackwright from the cluster file; changes made here are undone.\n"
        "[Unit]\n"
        "Description=/home (nfs home)\n"
        "X-Rackwright-Purpose=home\n"
        "Documentation=man:systemd.mount(5)\n"
        "Wants=network-online.target\n"
        "After=network-online.target\n"
        "# The unit must recover after a temporary failure of the server.\n"
        "StartLimitIntervalSec=0\n"
        "\n"
        "[Mount]\n"
        "What=10.9.0.10:/srv/home\n"
        "Where=/home\n"
        "Type=nfs4\n"
        f"Options={USUAL}\n"
        "TimeoutSec=90\n"
    )
    assert content(plan, texts.MODPROBE) == (
        "# Written by rackwright from the cluster file; changes made here are undone.\n"
        "# Requests in flight to an NFS server.\n"
        "options sunrpc tcp_max_slot_table_entries=128\n"
        "options nfs max_session_slots=128\n"
    )
    assert content(plan, texts.IDMAPD) == (
        "# Written by rackwright from the cluster file; changes made here are undone.\n"
        "# Names of users on the wire; with sec=sys both sides send numbers (nfs4_disable_idmapping).\n"
        "[General]\n"
        "Domain = test.example\n"
        "\n"
        "[Mapping]\n"
        "Nobody-User = nobody\n"
        "Nobody-Group = nogroup\n"
    )
    names = [operation.name for operation in plan.operations]
    assert (
        names.index("Mask rpcbind.socket")
        < names.index("Install the NFS client")
        < names.index("Mount /home")
    )
    assert names.index("Write the modprobe settings") < names.index("Install the NFS client")


def test_read_only_is_the_declared_key():
    assert "nodev,ro\n" in mount_text(
        NfsClientOptions().mount_of(worker(served(nfs())), nfs(purpose="software", read_only=True))
    )


def test_rdma_loads_its_module():
    cluster = served(nfs(rdma=True, network="fabric", servers=(OUTSIDE,)))
    plan = planned(cluster, worker(cluster))
    assert content(plan, texts.MODULES_LOAD) == (
        "# Written by rackwright from the cluster file; changes made here are undone.\n# NFS over RDMA.\nrpcrdma\n"
    )
    assert commands(plan, "Load rpcrdma") == ("modprobe rpcrdma",)


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = served(nfs(), os=os)
    for node in (head(cluster), worker(cluster)):
        plan = planned(cluster, node)
        assert plan.error is None
        assert {one.role for one in plan.operations} & {"nfs_client", "nfs_server"}
    nobody = "nogroup" if os.family.package_tool == "apt" else "nobody"
    assert f"Nobody-Group = {nobody}\n" in (
        texts.files(cluster, worker(cluster), NfsClientOptions())[texts.IDMAPD] or ""
    )


def judge(name, replies, cluster=None):
    cluster = cluster or served(nfs())
    result = judged("nfs_client", CHECKS, name, cluster, worker(cluster), FakeHost(replies))
    return str(result.status), result.evidence


def parameters(sunrpc="128\n", nfs_="128\n"):
    return answer(texts.live("sunrpc", 128), sunrpc) | answer(texts.live("nfs", 128), nfs_)


SLOTS = "the kernel allows the declared number of requests in flight"


def test_slots_are_compared():
    assert judge(SLOTS, parameters()) == ("PASS", "128 requests in flight to a server")
    assert judge(SLOTS, parameters("65536\n")) == (
        "FAIL",
        "tcp_max_slot_table_entries of sunrpc is 65536, not 128",
    )
    assert judge(SLOTS, parameters(nfs_="")) == (
        "UNKNOWN",
        "the kernel does not report max_session_slots of nfs",
    )


MASKED = "rpcbind and rpc.statd are masked"


def masked(state="masked", load="masked"):
    return {key: text for name in texts.MASKED for key, text in unit(name, "inactive", state, load).items()}


def test_masked_units():
    assert judge(MASKED, masked()) == ("PASS", "rpcbind.socket, rpcbind.service, rpc-statd.service")
    assert judge(MASKED, masked("enabled", "loaded")) == (
        "FAIL",
        "rpcbind.socket is enabled, not masked: NFSv4 does not need it, and it listens on every address",
    )
    assert judge(MASKED, {})[0] == "UNKNOWN"


RUNS = "the NFS client is installed and running"


def test_the_client_runs():
    there = installed(DEBIAN_13.family, ("nfs-common",))
    assert judge(RUNS, there | unit("nfs-client.target")) == (
        "PASS",
        "1 packages; nfs-client.target is active and enabled",
    )
    assert judge(
        RUNS,
        installed(DEBIAN_13.family, ("nfs-common",), missing=("nfs-common",)) | unit("nfs-client.target"),
    ) == (
        "FAIL",
        "not installed: nfs-common",
    )
    assert judge(RUNS, there | unit("nfs-client.target", "inactive")) == (
        "FAIL",
        "nfs-client.target is inactive",
    )
    assert judge(RUNS, there)[0] == "UNKNOWN"


FILES = "the NFS client's files are as declared"


def test_files_are_compared():
    cluster = served(nfs())
    wanted = texts.files(cluster, worker(cluster), NfsClientOptions())
    assert judge(FILES, files(wanted))[0] == "PASS"
    assert judge(FILES, files(wanted | {texts.MODULES_LOAD: "rpcrdma\n"})) == (
        "FAIL",
        "/etc/modules-load.d/rackwright-nfs-client.conf exists but is not declared",
    )
    assert judge(FILES, files(wanted | {texts.MODPROBE: None})) == ("FAIL", f"{texts.MODPROBE} is missing")
    assert judge(FILES, {})[0] == "UNKNOWN"


def test_a_container_is_out_of_scope():
    cluster = served(nfs(), platform=Platform.CONTAINER)
    assert judge(SLOTS, {}, cluster)[0] == "OUT OF SCOPE"
    assert judge("NFS filesystems answer within their deadlines", {}, cluster)[0] == "OUT OF SCOPE"
