"""The tuning role: options, values by kind of node, what is separate in a container, whole files."""

from __future__ import annotations

import pytest

from rackwright.model.types import NodeRole, Platform
from rackwright.operations.sysctls import values_to_set
from rackwright.osfamily.known import os_release
from rackwright.render import render
from rackwright.roles.tuning import values
from rackwright.roles.tuning.options import Journal, Limits, TuningOptions
from tests.factories import SKU
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.sites import expected, head, site, worker

OWNS = {"owns_clock_rate": True}
OPTIONS = TuningOptions(sysctl={"kernel.panic": 10, "net.ipv4.ip_local_port_range": "15000  60999"})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sysctl": {"swappiness": 1}}, "'swappiness' is not a sysctl key such as 'vm.swappiness'."),
        (
            {"sysctl": {"vm.swappiness": "$(reboot)"}},
            "'$(reboot)' is not a value for vm.swappiness: letters, digits, spaces and '_./:-'.",
        ),
        (
            {"sysctl": {"net/ipv4/ip_forward": 1}},
            "net/ipv4/ip_forward is declared as the option `forwarding` of the base role.",
        ),
        ({"journal": {"max_use": "4 GB"}}, "'4 GB' is not a size such as '4G' or '512M'."),
        ({"transparent_hugepages": "yes"}, "Input should be 'always', 'madvise' or 'never'"),
        ({"limits": {"nofile": 2097152}}, "Input should be less than or equal to 1048576"),
        ({"thp": "always"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(TuningOptions, given) == [sentence]


def _node(*roles, **changes):
    node = worker(site({"tuning": TuningOptions()}))
    return node.model_copy(update={"roles": frozenset(roles), **changes})


def test_a_gpu_worker_has_all_of_it():
    found = values.sysctls(_node(NodeRole.WORKER), TuningOptions())
    assert list(found) == sorted(found)
    assert found["kernel.numa_balancing"] == "0"
    assert found["vm.min_free_kbytes"] == "135168"
    assert found["net.ipv4.tcp_rmem"] == "4096 131072 1073741824"
    assert (found["vm.dirty_ratio"], found["vm.dirty_background_ratio"]) == ("10", "3")
    assert "net.ipv4.tcp_max_syn_backlog" not in found


def test_a_small_worker_keeps_the_kernels_buffers_and_reserve():
    found = values.sysctls(_node(NodeRole.WORKER, sku=SKU), TuningOptions())
    assert {"vm.min_free_kbytes", "net.core.rmem_max", "net.ipv4.tcp_rmem"}.isdisjoint(found)
    assert found["vm.zone_reclaim_mode"] == "0"


def test_a_head_that_is_also_a_worker_is_tuned_for_jobs():
    found = values.sysctls(_node(NodeRole.HEAD, NodeRole.WORKER, NodeRole.STORAGE), TuningOptions())
    assert found["vm.dirty_ratio"] == "10"
    assert found["net.ipv4.tcp_max_syn_backlog"] == "4096"


def test_a_storage_node_writes_back_in_large_batches():
    found = values.sysctls(_node(NodeRole.STORAGE), TuningOptions())
    assert found["vm.dirty_ratio"] == "40"
    assert "kernel.numa_balancing" not in found


def test_the_site_has_the_last_word():
    found = values.sysctls(_node(NodeRole.WORKER), TuningOptions(sysctl={"vm.dirty_ratio": 20}))
    assert found["vm.dirty_ratio"] == "20"
    found = values.sysctls(_node(NodeRole.WORKER), OPTIONS)
    assert found["net.ipv4.ip_local_port_range"] == "15000 60999"  # as the kernel prints it, blanks single


def test_the_reserve_is_only_raised_unless_the_site_declares_it():
    node = _node(NodeRole.WORKER)
    assert values.at_least(node, TuningOptions()) == {"vm.min_free_kbytes": "135168"}
    declared = TuningOptions(sysctl={"vm.min_free_kbytes": 65536})
    assert values.at_least(node, declared) == {}
    assert values.sysctls(node, declared)["vm.min_free_kbytes"] == "65536"
    assert values.at_least(_node(NodeRole.HEAD), TuningOptions()) == {}
    assert (
        values.sysctls(node, TuningOptions(sysctl={"vm.zone_reclaim_mode": 1}))["vm.zone_reclaim_mode"] == "1"
    )


@pytest.mark.parametrize(
    ("there", "set_to"),
    [("67584", "135168"), ("135168", None), ("185363", None), ("", "135168"), (None, "135168")],
)
def test_the_deploy_lowers_no_reserve(there, set_to):
    reported = {"vm.min_free_kbytes": there, "vm.swappiness": "10"}
    found = {key: value for key, value in reported.items() if value is not None}
    wanted = {"vm.min_free_kbytes": "135168", "vm.swappiness": "10"}
    wrong = values_to_set(found, wanted, ("vm.min_free_kbytes",))
    assert wrong == ({} if set_to is None else {"vm.min_free_kbytes": set_to})
    assert values_to_set({"vm.swappiness": "60"}, {"vm.swappiness": "10"}, ()) == {"vm.swappiness": "10"}


def test_tuned_raises_it_at_boot():
    cluster = site({"tuning": OPTIONS})
    text = content(planned(cluster, worker(cluster)), "/etc/tuned/profiles/rackwright/tuned.conf")
    assert text == expected("tuning/tuned-worker.conf")
    assert "\nvm.min_free_kbytes=>135168\n" in text


def test_every_value_that_may_be_chosen_has_a_key_in_the_table():
    everything = values.sysctls(_node(*NodeRole), TuningOptions())
    assert set(everything) <= set(values.KEYS)
    assert set(values.KEYS) - set(everything) == set()


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("net.core.somaxconn", True),
        ("net.ipv4.tcp_rmem", True),
        ("net.ipv4.conf.all.rp_filter", True),
        ("net/ipv4/conf/eth0.100/rp_filter", True),
        ("net.core.rmem_max", False),
        ("net.core.busy_read", False),
        ("net.ipv4.neigh.default.gc_thresh1", False),
        ("vm.swappiness", False),
        ("kernel.numa_balancing", False),
    ],
)
def test_what_a_container_has_of_its_own(key, own):
    assert values.is_of_the_network_namespace(key) is own
    assert values.in_scope(_node(NodeRole.WORKER, platform=Platform.CONTAINER), key) is own
    assert values.in_scope(_node(NodeRole.WORKER, platform=Platform.VM), key)


@pytest.mark.parametrize(
    ("roles", "sku", "chosen", "depth"),
    [
        ({NodeRole.WORKER}, None, None, "moderate"),
        ({NodeRole.WORKER}, SKU, None, "shallow"),
        ({NodeRole.HEAD}, SKU, None, "all"),
        ({NodeRole.HEAD}, SKU, "shallow", "shallow"),
    ],
)
def test_idle_states(roles, sku, chosen, depth):
    node = _node(*roles, **({} if sku is None else {"sku": sku}))
    assert values.idle_states(node, TuningOptions(idle_states=chosen)) == depth


@pytest.mark.parametrize(
    ("roles", "swap", "off"),
    [
        ({NodeRole.WORKER}, None, True),
        ({NodeRole.WORKER}, "keep", False),
        ({NodeRole.HEAD}, None, False),
        ({NodeRole.HEAD}, "off", True),
    ],
)
def test_swap(roles, swap, off):
    assert values.swap_off(_node(*roles), TuningOptions(swap=swap)) is off


@pytest.mark.parametrize(
    ("roles", "nproc", "limit"),
    [
        ({NodeRole.WORKER}, None, "unlimited"),
        ({NodeRole.LOGIN}, None, None),
        ({NodeRole.LOGIN}, 4096, 4096),
        ({NodeRole.LOGIN, NodeRole.HEAD}, None, "unlimited"),
    ],
)
def test_processes(roles, nproc, limit):
    assert values.process_limit(_node(*roles), TuningOptions(limits=Limits(nproc=nproc))) == limit


@pytest.mark.parametrize(
    ("platform", "file"),
    [(Platform.BARE_METAL, "sysctl-gpu-worker.conf"), (Platform.CONTAINER, "sysctl-container.conf")],
)
def test_sysctl_file(platform, file):
    cluster = site({"tuning": OPTIONS}, platform=platform)
    plan = planned(cluster, worker(cluster))
    (change,) = next(entry for entry in plan.operations if entry.name == "Write the kernel values").changes
    assert change.content == expected(f"tuning/{file}")


@pytest.mark.parametrize(
    ("template", "variables", "file"),
    [
        ("limits.conf", {"limits": Limits(), "nproc": "unlimited"}, "limits.conf"),
        ("limits.conf", {"limits": Limits(memlock=65536), "nproc": None}, "limits-login.conf"),
        ("system.conf", {"memlock": "infinity"}, "system.conf"),
        ("journald.conf", {"journal": Journal()}, "journald.conf"),
        ("tmpfiles.conf", {"choice": "madvise"}, "tmpfiles.conf"),
        (
            "tuned.conf",
            {**OWNS, "raised": {}, "governor": "performance", "idle_states": "shallow"},
            "tuned-shallow.conf",
        ),
        (
            "tuned.conf",
            {**OWNS, "raised": {}, "governor": "performance", "idle_states": "moderate"},
            "tuned-moderate.conf",
        ),
        (
            "tuned.conf",
            {**OWNS, "raised": {}, "governor": "schedutil", "idle_states": "all"},
            "tuned-all.conf",
        ),
        ("tuned.conf", {"owns_clock_rate": False, "raised": {}}, "tuned-vm.conf"),
    ],
)
def test_whole_files(template, variables, file):
    assert render(f"tuning/{template}.j2", **variables) == expected(f"tuning/{file}")


def _names(plan):
    assert plan.error is None
    return [operation.name for operation in plan.operations]


EVERYWHERE = ["Write the kernel values", "Set the kernel values", "Write the limits for login sessions"]
MANAGER = [
    "Create the folder for systemd settings",
    "Write the limits for services",
    "Reload systemd for the service limits",
]
HUGEPAGES = ["Write the huge-page setting", "Set transparent huge pages"]
TUNED = [
    "Install tuned",
    "Create the folder for the tuned profile",
    "Write the tuned profile",
    "Start tuned",
    "Activate the tuned profile",
]
SWAP = ["Mask swap", "Remove swap from /etc/fstab", "Disable swap"]
JOURNAL = [
    "Create the folder for journald settings",
    "Write journald's settings",
    "Start journald with its settings",
]


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        (Platform.BARE_METAL, [*TUNED, *HUGEPAGES, *EVERYWHERE, *MANAGER, *SWAP, *JOURNAL]),
        (Platform.VM, [*TUNED, *HUGEPAGES, *EVERYWHERE, *MANAGER, *SWAP, *JOURNAL]),
        (Platform.CONTAINER, [*EVERYWHERE, *MANAGER, *JOURNAL]),
    ],
)
def test_a_platform_gets_what_it_has(platform, names):
    cluster = site({"tuning": OPTIONS}, platform=platform)
    assert _names(planned(cluster, worker(cluster))) == names


def test_a_head_keeps_its_swap():
    cluster = site({"tuning": OPTIONS})
    assert "Disable swap" not in _names(planned(cluster, head(cluster)))


def test_a_container_is_asked_for_its_own_values_only():
    cluster = site({"tuning": OPTIONS}, platform=Platform.CONTAINER)
    (command,) = commands(planned(cluster, worker(cluster)), "Set the kernel values")
    assert command == (
        "sysctl -q -w net.core.somaxconn=4096 'net.ipv4.ip_local_port_range=15000 60999' "
        "net.ipv4.tcp_fastopen=3 'net.ipv4.tcp_rmem=4096 131072 1073741824' "
        "'net.ipv4.tcp_wmem=4096 16384 1073741824'"
    )


@pytest.mark.parametrize(
    ("os", "folder", "install"),
    [
        (
            os_release("rocky-9"),
            "/etc/tuned/rackwright",
            "dnf -q -y --setopt=install_weak_deps=False install tuned",
        ),
        (os_release("ubuntu-24.04"), "/etc/tuned/rackwright", "install tuned"),
        (os_release("debian-13"), "/etc/tuned/profiles/rackwright", "install tuned"),
        (os_release("ubuntu-26.04"), "/etc/tuned/profiles/rackwright", "install tuned"),
    ],
)
def test_what_each_family_gets(os, folder, install):
    cluster = site({"tuning": OPTIONS}, os=os)
    plan = planned(cluster, worker(cluster))
    assert install in commands(plan, "Install tuned")[0]
    assert commands(plan, "Create the folder for the tuned profile")[0].startswith(f"mkdir -p {folder} ")
    assert commands(plan, "Activate the tuned profile") == ("tuned-adm profile rackwright",)
    assert commands(plan, "Reload systemd for the service limits") == ("systemctl daemon-reexec",)
    assert commands(plan, "Disable swap") == ("swapoff -a",)
    assert commands(plan, "Set transparent huge pages") == (
        "printf %s madvise >/sys/kernel/mm/transparent_hugepage/enabled",
    )
