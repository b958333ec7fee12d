"""The nccl role."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from rackwright.burnin.rails import devices_of_nccl
from rackwright.claims.check import Undetermined
from rackwright.model.hcas import MarksTraffic, ReducesInSwitches
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Burnin
from rackwright.model.sku import Nic
from rackwright.model.types import LinkKind, NetworkPurpose, Platform
from rackwright.osfamily.known import RELEASES
from rackwright.roles.nccl import texts
from rackwright.roles.nccl.options import NcclOptions
from rackwright.roles.nccl.readings import (
    END,
    READ_DEVICES,
    READ_SHADOWS,
    parse_shadows,
    parse_topology,
    whole,
)
from rackwright.roles.nccl.verify import CHECKS
from tests.factories import make_gpu_sku
from tests.unit.roles.fake_facts import file, files
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.rail_sites import Devices, Interfaces, fabric, fabric_site
from tests.unit.roles.sites import head, worker

FILE, EXIST, SHADOWS, NEAR, _ = (check.name for check in CHECKS)
DEVICES, OTHERS = f"sh -c {shlex.quote(READ_DEVICES)}", f"sh -c {shlex.quote(READ_SHADOWS)}"
TOPOLOGY = "timeout 60 nvidia-smi topo -m"
SKU = make_gpu_sku(
    nics=tuple(
        Nic(purpose=NetworkPurpose.FABRIC, kind=LinkKind.ROCE, speed_gbps=400, rail=rail, near_gpus=(rail,))
        for rail in (0, 1)
    )
)
TABLE = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPIX\tSYS\t0-55\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tPXB\t56-111\t1\t\tN/A
NIC0\tPIX\tSYS\t X \tSYS\t\t\t\t
NIC1\tSYS\tPXB\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  PIX  = Connection traversing at most a single PCIe bridge

NIC Legend:

  NIC0: mlx5_rail0
  NIC1: mlx5_rail1

"""


class Marks(RoleOptions, MarksTraffic):
    """Stands for the role that marks RDMA traffic."""

    priority: int = 3

    @property
    def traffic_class(self):
        return 104


class Sharp(RoleOptions, ReducesInSwitches):
    """Stands for the role that declares SHARP."""

    on: tuple[str, ...] = ("fabric",)

    def reduces(self, network):
        return network in self.on


def nccl_site(given=None, *, kind=LinkKind.ROCE, parts=None, **changes):
    every = {"devices": Devices(), "naming": Interfaces(), "marks": Marks()} if parts is None else parts
    return fabric_site({"nccl": given or NcclOptions(), **every}, kind=kind, **{"sku": SKU, **changes})


def environment(cluster):
    node = worker(cluster)
    return dict(node.options["nccl"].collective_environment(cluster, node))


CLUSTER = nccl_site()


def test_the_whole_file():
    assert texts.configuration(CLUSTER, worker(CLUSTER), NcclOptions()) == (
        "# Written by rackwright; changes made here are undone. The environment and ~/.nccl.conf win over it.\n"
        "# declared devices, in the order of fabric rail 0, fabric rail 1; = is exactly these\n"
        "NCCL_IB_HCA==mlx5_rail0,mlx5_rail1\n"
        "# declared interface of management; = is exactly this\n"
        "NCCL_SOCKET_IFNAME==mgmt0.12\n"
        "# DSCP 26 of the role roce, times 4\n"
        "NCCL_IB_TC=104\n"
        "# each rail has leaves that no spine connects to another rail's (NCCL user guide, environment variables)\n"
        "NCCL_CROSS_NIC=0\n"
    )
    assert "nccl" not in head(CLUSTER).options


def test_infiniband_has_no_traffic_class_and_may_have_sharp():
    parts = {"devices": Devices(), "sharp": Sharp(), "marks": Marks()}
    assert environment(nccl_site(kind=LinkKind.INFINIBAND, parts=parts)) == {
        "NCCL_IB_HCA": "=mlx5_rail0,mlx5_rail1",
        "NCCL_CROSS_NIC": "0",
        "NCCL_COLLNET_ENABLE": "1",
    }
    assert "NCCL_COLLNET_ENABLE" not in environment(
        nccl_site(kind=LinkKind.INFINIBAND, parts={**parts, "sharp": Sharp(on=())})
    )


def test_with_spines_nccl_may_cross_rails():
    made = fabric()
    spined = type(made)(made.network, made.kind, 2, made.leaves, ("spine1",), made.cables)
    cluster = nccl_site().model_copy(update={"fabrics": {"fabric": spined}})
    assert "NCCL_CROSS_NIC" not in environment(cluster)
    assert "NCCL_CROSS_NIC" not in environment(nccl_site(cabled=False))
    assert environment(nccl_site(NcclOptions(cross_nic=1)))["NCCL_CROSS_NIC"] == "1"


@pytest.mark.parametrize("kind", [LinkKind.IWARP, LinkKind.EFA, LinkKind.ETHERNET])
def test_devices_that_nccl_s_verbs_transport_cannot_use_are_left_out(kind):
    found = environment(nccl_site(kind=kind))
    assert "NCCL_IB_HCA" not in found
    assert "NCCL_IB_TC" not in found
    assert found.get("FI_PROVIDER") == ("efa" if kind is LinkKind.EFA else None)


def test_what_the_cluster_file_has_instead_is_shown():
    given = NcclOptions(
        socket_interface="mgmt1",
        gid_index=3,
        environment={"NCCL_IB_TC": "41", "NCCL_IB_TIMEOUT": "22", "NCCL_ALGO": "Ring"},
    )
    cluster = nccl_site(given)
    text = texts.configuration(cluster, worker(cluster), given)
    assert text.endswith(
        "# the cluster file, roles.nccl.environment instead of 104, which the fabric gives\n"
        "NCCL_IB_TC=41\n"
        "# the cluster file, roles.nccl.environment\n"
        "NCCL_IB_TIMEOUT=22\n"
        "# the cluster file, roles.nccl.environment\n"
        "NCCL_ALGO=Ring\n"
    )
    assert text.count("NCCL_IB_TC=") == 1
    assert "NCCL_SOCKET_IFNAME==mgmt1\n" in text
    assert "NCCL_IB_GID_INDEX=3\n" in text
    assert list(given.warnings(cluster)) == [
        (
            "environment.NCCL_IB_TC",
            "NCCL_IB_TC is 41, and the declared fabric gives gpu1 104.",
            "leave it out, unless this is intended",
        ),
        ("environment.NCCL_ALGO", "NCCL_ALGO fixes what NCCL chooses by size and topology.", "leave it out"),
    ]
    assert list(NcclOptions().warnings(CLUSTER)) == []


def test_a_burn_in_that_measures_with_other_values_than_jobs_have_is_warned_of():
    given = {"NCCL_IB_HCA": "=mlx5_rail0", "NCCL_IB_TC": "104", "NCCL_DEBUG_SUBSYS": "NET"}
    cluster = CLUSTER.model_copy(update={"burnin": Burnin(nccl_env=given)})
    assert list(NcclOptions().warnings(cluster)) == [
        (
            "",
            "NCCL_IB_HCA is `=mlx5_rail0,mlx5_rail1` for jobs on gpu1, and `=mlx5_rail0` for the burn-in.",
            "leave NCCL_IB_HCA out of `burnin.nccl_env`",
        )
    ]
    assert devices_of_nccl(cluster, worker(cluster)) == ("mlx5_rail0:1",), "as the burn-in runs"


def test_burn_in_knows_which_devices_nccl_is_to_use():
    assert devices_of_nccl(CLUSTER, worker(CLUSTER)) == ("mlx5_rail0:1", "mlx5_rail1:1")
    ports = CLUSTER.model_copy(
        update={"burnin": Burnin(nccl_env={"NCCL_IB_HCA": "=mlx5_rail0:2,mlx5_rail1"})}
    )
    assert devices_of_nccl(ports, worker(ports)) == ("mlx5_rail0:2", "mlx5_rail1:1")
    for pattern in ("mlx5", "^mlx5_3", "mlx5_0,mlx5_1"):
        cluster = CLUSTER.model_copy(update={"burnin": Burnin(nccl_env={"NCCL_IB_HCA": pattern})})
        assert devices_of_nccl(cluster, worker(cluster)) == (), f"{pattern} is not an exact list"
    assert devices_of_nccl(CLUSTER, head(CLUSTER)) == ()


def test_refused():
    assert errors_in(NcclOptions, {"environment": {"PATH": "/tmp"}}) == [
        "'PATH' is not a variable of NCCL or of its network plugins."
    ]
    assert errors_in(NcclOptions, {"environment": {"NCCL_DEBUG": "IN FO"}}) == [
        "'IN FO' cannot be the value of NCCL_DEBUG."
    ]
    given = NcclOptions(networks=("fabrik", "management"))
    assert list(given.problems(nccl_site(given))) == [
        ("networks[0]", "There is no network fabrik.", "did you mean `fabric`?"),
        ("networks[1]", "management has the purpose management.", "name a fabric"),
    ]


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = fabric_site({"nccl": NcclOptions(), "devices": Devices()}, os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert content(plan, texts.CONFIGURATION) == texts.configuration(cluster, worker(cluster), NcclOptions())


HEALTHY = {
    **files({texts.CONFIGURATION: texts.configuration(CLUSTER, worker(CLUSTER), NcclOptions())}),
    DEVICES: f"mlx5_0\nmlx5_rail0\nmlx5_rail1\n{END}\n",
    OTHERS: f"/etc/profile.d/site.sh:3:# NCCL_IB_HCA=mlx5_0\n{END}\n",
    TOPOLOGY: TABLE,
}
CASES = [
    (
        FILE,
        {},
        "PASS",
        "NCCL_IB_HCA==mlx5_rail0,mlx5_rail1, NCCL_SOCKET_IFNAME==mgmt0.12, NCCL_IB_TC=104, NCCL_CROSS_NIC=0",
    ),
    (FILE, file(texts.CONFIGURATION, None), "FAIL", "/etc/nccl.conf is missing"),
    (EXIST, {}, "PASS", "mlx5_rail0, mlx5_rail1"),
    (EXIST, {DEVICES: f"mlx5_0\nmlx5_rail0\n{END}\n"}, "FAIL", "no RDMA device mlx5_rail1; the node has mlx5_0, mlx5_rail0"),
    (EXIST, {DEVICES: f"{END}\n"}, "FAIL", "no RDMA device mlx5_rail0, mlx5_rail1; the node has none"),
    (EXIST, {DEVICES: "mlx5_rail0\n"}, "UNKNOWN", "the node did not print all of it"),
    (SHADOWS, {}, "PASS", "no shared file sets another value"),
    (
        SHADOWS,
        {OTHERS: f'/etc/environment:1:NCCL_IB_HCA="mlx5_0"\n/etc/environment:2:NCCL_IB_TC=104\n{END}\n'},
        "FAIL",
        "/etc/environment sets NCCL_IB_HCA=mlx5_0, not =mlx5_rail0,mlx5_rail1",
    ),
    (
        SHADOWS,
        {OTHERS: f"/etc/profile.d/x.sh:1:export NCCL_CONF_FILE=/opt/nccl.conf\n{END}\n"},
        "FAIL",
        "/etc/profile.d/x.sh sets NCCL_CONF_FILE=/opt/nccl.conf",
    ),
    (
        SHADOWS,
        {OTHERS: f"/etc/profile.d/x.sh:1:export NCCL_DEBUG=INFO\n{END}\n"},
        "WARN",
        "/etc/profile.d/x.sh sets NCCL_DEBUG=INFO: not declared",
    ),
    (SHADOWS, {OTHERS: "rubbish\n" + END}, "UNKNOWN", None),
    (SHADOWS, {OTHERS: ""}, "UNKNOWN", None),
    (NEAR, {}, "PASS", "mlx5_rail0: GPU 0, mlx5_rail1: GPU 1"),
    (
        NEAR,
        {TOPOLOGY: TABLE.replace("NIC0: mlx5_rail0", "NIC0: mlx5_rail1").replace("NIC1: mlx5_rail1", "NIC1: mlx5_rail0")},
        "FAIL",
        (
            "mlx5_rail0 and GPU 0 are connected by SYS, not by one PCIe switch; "
            "mlx5_rail1 and GPU 1 are connected by SYS, not by one PCIe switch"
        ),
    ),
    (
        NEAR,
        {TOPOLOGY: TABLE.replace("mlx5_rail1", "mlx5_9")},
        "UNKNOWN",
        "nvidia-smi topo -m does not list mlx5_rail1 and GPU 1",
    ),
    (NEAR, {TOPOLOGY: "No devices were found\n"}, "UNKNOWN", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "status", "evidence"), CASES)
def test_check(name, changes, status, evidence):
    found = judged("nccl", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({**HEALTHY, **changes}))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize("answer", [None, "", "rubbish\n", (124, "", ""), (1, "", "no")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    found = judged("nccl", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert found.status in ("FAIL", "UNKNOWN"), found.evidence


def test_scope():
    container = nccl_site(platform=Platform.CONTAINER)
    for name in (EXIST, NEAR):
        assert (
            judged("nccl", CHECKS, name, container, worker(container), FakeHost({})).status == "OUT OF SCOPE"
        )
    plain = nccl_site(sku=make_gpu_sku())
    found = judged("nccl", CHECKS, NEAR, plain, worker(plain), FakeHost({}))
    assert (found.status, found.evidence) == (
        "OUT OF SCOPE",
        "the SKU gpu-node does not declare which GPUs are near which rail",
    )
    no_gpus = nccl_site(sku=make_gpu_sku(gpus=None))
    assert NEAR not in claimed("nccl", CHECKS, worker(no_gpus))
    ethernet = nccl_site(kind=LinkKind.ETHERNET)
    assert judged("nccl", CHECKS, EXIST, ethernet, worker(ethernet), FakeHost({})).evidence == (
        "NCCL_IB_HCA names no device exactly"
    )


def test_the_shell_finds_settings_in_files_that_every_user_gets(tmp_path):
    (tmp_path / "etc/profile.d").mkdir(parents=True)
    (tmp_path / "etc/profile.d/mpi.sh").write_text("export NCCL_IB_HCA='mlx5_0' NCCL_DEBUG=WARN\nPATH=/x\n")
    (tmp_path / "etc/environment").write_text("LANG=C\n")
    moved = READ_SHADOWS.replace(" /etc", f" {tmp_path}/etc").replace(" /root", f" {tmp_path}/root")
    done = subprocess.run(["sh", "-c", moved], capture_output=True, text=True, check=True, timeout=20)
    assert [
        (path.removeprefix(str(tmp_path)), name, value) for path, name, value in parse_shadows(done.stdout)
    ] == [
        ("/etc/profile.d/mpi.sh", "NCCL_IB_HCA", "mlx5_0"),
        ("/etc/profile.d/mpi.sh", "NCCL_DEBUG", "WARN"),
    ]


def test_readings():
    assert parse_topology(TABLE)["mlx5_rail1", 1] == "PXB"
    for text in ("", "a\n"):
        with pytest.raises(Undetermined):
            whole(text)
    with pytest.raises(Undetermined):
        parse_topology(TABLE.replace("GPU0\t X \tNV18\tPIX\tSYS\t0-55\t0\t\tN/A", "GPU0\t X"))
