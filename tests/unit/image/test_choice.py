"""Which operations go into an image: of the cluster files of inventory/ as virtual machines, and one by one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import Order, order
from rackwright.image.choice import EVALUATED_MAX, alike, choose, evaluated, groups
from rackwright.model.cluster import Cluster
from rackwright.model.selection import pick
from rackwright.model.types import Platform
from rackwright.plan.changes import Change, Kind
from rackwright.plan.node_plan import PlannedOperation

INVENTORY = Path(__file__).resolve().parents[3] / "inventory"


@cache
def _vms(name: str) -> Cluster:
    cluster = load_cluster(INVENTORY / f"{name}.yaml", locked=False)
    vms = (node.model_copy(update={"platform": Platform.VM}) for node in cluster.nodes)
    # as machines they would have real GPUs, whose exporter comes from a lock
    nodes = tuple(
        node.with_options({role: given for role, given in node.options.items() if role != "dcgm_exporter"})
        for node in vms
    )
    return cluster.model_copy(update={"nodes": nodes})


@cache
def _order(node: str) -> Order:
    cluster = _vms("lab")
    return order(cluster, alike(cluster, pick(cluster, node)), "disk", 16)


def _operation(
    *changes: Change, role: str = "base", name: str = "do it", commands: tuple[str, ...] = ("true",)
) -> PlannedOperation:
    return PlannedOperation(role, name, changes, commands)


def _change(kind: Kind, target: str, after: str = "installed", content: str | None = None) -> Change:
    return Change(kind, target, None, after, content=content)


def test_a_worker_of_the_lab_gets_accounts_before_the_packages_that_would_make_them_otherwise() -> None:
    names = [(step.role, step.name) for step in _order("worker1").choice.steps]

    assert ("slurm", "Install Slurm") in names
    for role, account, package in (
        ("munge", "Create user munge", "Install munge"),
        ("slurm", "Create user slurm", "Install Slurm"),
    ):
        assert names.index((role, account)) < names.index((role, package))
    assert "mariadb" not in {role for role, _ in names}
    assert "mariadb" in {step.role for step in _order("head1").choice.steps}


def test_what_differs_from_node_to_node_and_what_runs_is_left_to_the_first_run() -> None:
    choice = _order("worker1").choice

    assert "Write /etc/hostname" in choice.left["base"]
    assert "Set apt's proxy" in choice.left["base"]
    assert "Start slurmd with its settings" in choice.left["slurm"]
    assert "Write /etc/slurm/slurm.conf" in choice.left["slurm"]
    assert choice.differing == {}


def test_the_munge_key_and_nothing_else_that_is_secret_is_in_an_image() -> None:
    for node in ("head1", "worker1"):
        choice = _order(node).choice
        assert "Write the munge key" in choice.left["munge"]
        text = repr(choice.steps)
        assert "munge.key" not in text
        assert "(sensitive)" not in text
        assert "*MASKED*" not in text


def test_the_key_is_that_of_the_content_and_not_of_the_node() -> None:
    cluster = _vms("lab")

    assert order(cluster, pick(cluster, "worker2"), "disk", 16).key == _order("worker1").key
    assert order(cluster, pick(cluster, "worker2"), "disk", 17).key != _order("worker1").key
    assert order(cluster, pick(cluster, "worker2"), "oci", 16).key != _order("worker1").key
    assert order(cluster, pick(cluster, "worker2"), "oci", 17).key == (
        order(cluster, pick(cluster, "worker2"), "oci", 16).key
    )
    assert _order("head1").key != _order("worker1").key


def test_a_locked_driver_brings_its_archive_its_pin_its_kernel_and_its_modules() -> None:
    from rackwright.data import Site
    from rackwright.engine.reports import Reports
    from rackwright.pyinfra_driver.driver import Driver
    from rackwright.pyinfra_driver.offline import EmptyNode
    from rackwright.shipped import SITE_DEPLOY

    cluster = load_cluster(INVENTORY / "example-dgx-h100.yaml")
    node = pick(cluster, "gpu001")[0]
    reports = Reports()
    Driver([Site(cluster, node, offline=True)], SITE_DEPLOY, reports, connector=EmptyNode).plan()
    choice = choose([reports.plans[node.name].operations])

    names = [step.name for step in choice.steps if step.role in ("kernel", "nvidia_driver")]
    wanted = (
        "Install the declared kernel and its headers",
        "Write GRUB's default kernel and arguments",
        "Write the key of the driver's repository",
        "Write the driver's repository",
        "Pin the driver's dependencies",
        "Write the modules' options and keep nouveau out",
        "Install the locked driver",
        "Build the driver's modules",
    )
    assert [name for name in names if name in wanted] == list(wanted)
    assert "Load the driver" in choice.left["nvidia_driver"]


@pytest.mark.parametrize(
    "operation",
    [
        _operation(
            _change(
                "file", "/etc/apt/sources.list.d/a.sources", "file 644 root:root, content (sensitive)", "x"
            )
        ),
        _operation(_change("user", "db", "password (sensitive)")),
        _operation(_change("user", "db"), commands=("usermod --password *MASKED* db",)),
        _operation(
            _change("file", "/etc/apt/auth.conf.d/site.conf", "file 600 root:root", "machine a password b")
        ),
        _operation(_change("file", "/etc/apt/apt.conf.d/90rackwright-proxy", "file 644 root:root", "proxy")),
        _operation(_change("file", "/etc/modprobe.d/a.conf", "file 644 root:root", None)),
        _operation(_change("directory", "/etc/apt/keyrings", "directory with 2 files, 644 root:root")),
        _operation(_change("file", "/etc/modprobe.deny", "file 644 root:root", "x")),
        _operation(_change("link", "/etc/modprobe.d/a.conf", "link to b")),
        _operation(_change("package", "chrony"), _change("unit", "chrony.service", "running")),
        _operation(_change("setting", "driver", "loaded")),
        _operation(_change("setting", "initramfs of another kind", "current")),
        _operation(),
    ],
)
def test_it_is_left_to_the_first_run(operation: PlannedOperation) -> None:
    choice = choose([[operation]])

    assert choice.steps == ()
    assert choice.left == {"base": ("do it",)}
    assert choice.differing == {}


@pytest.mark.parametrize(
    "operation",
    [
        _operation(_change("package", "jq"), _change("package", "curl")),
        _operation(_change("group", "munge", "gid 440")),
        _operation(_change("setting", "DKMS module /usr/src/nvidia*-535", "built")),
        _operation(_change("setting", "initramfs", "current")),
    ],
)
def test_its_commands_run_in_the_image(operation: PlannedOperation) -> None:
    (step,) = choose([[operation]]).steps

    assert step.commands == ("true",)
    assert step.files == ()


def test_a_file_is_written_with_its_access() -> None:
    operation = _operation(_change("file", "/etc/modprobe.d/a.conf", "file 640 root:adm", "options a\n"))

    (step,) = choose([[operation]]).steps

    (file,) = step.files
    assert (file.path, file.mode, file.owner, file.group) == ("/etc/modprobe.d/a.conf", 0o640, "root", "adm")
    assert file.content == "options a\n"


def test_only_what_all_nodes_have_goes_into_the_image_and_the_rest_is_named() -> None:
    same = _operation(_change("package", "jq"), name="same")
    one = _operation(_change("package", "a"), name="of one", commands=("install a",))
    other = _operation(_change("package", "b"), role="slurm", name="of the other")
    unit = _operation(_change("unit", "a.service", "running"), name="run it")

    choice = choose([[same, one, unit], [same, other, unit]])

    assert [step.name for step in choice.steps] == ["same"]
    assert choice.left == {"base": ("of one", "run it"), "slurm": ("of the other",)}
    assert choice.differing == {"base": ("of one",), "slurm": ("of the other",)}


def test_one_node_names_all_nodes_like_it_and_several_only_themselves() -> None:
    cluster = _vms("lab")

    assert [node.name for node in alike(cluster, pick(cluster, "worker2"))] == ["worker1", "worker2"]
    assert [node.name for node in alike(cluster, pick(cluster, "head1"))] == ["head1"]
    assert [node.name for node in alike(cluster, pick(cluster, "head1,worker1"))] == ["head1", "worker1"]
    assert [len(group) for group in groups(cluster.nodes)] == [1, 2]


def test_a_large_group_is_represented_by_its_first_its_last_and_nodes_between() -> None:
    nodes = _vms("example-dgx-h100").nodes[-31:] * 40

    chosen = evaluated(nodes)

    assert len(chosen) == EVALUATED_MAX
    assert (chosen[0], chosen[-1]) == (nodes[0], nodes[-1])
    assert evaluated(nodes[:3]) == nodes[:3]


def test_services_that_roles_enable_do_not_start_before_they_are_configured() -> None:
    """slurmd without a slurm.conf takes minutes to give up; ssh and what no role manages stay as they are."""
    units = _order("worker1").choice.units

    assert {"munge.service", "slurmd.service"} <= set(units)
    assert not {unit for unit in units if not unit.endswith(".service")}
    assert "mariadb.service" in _order("head1").choice.units
