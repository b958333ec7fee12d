"""Options of the slurm role that are refused, and what is wrong against the resolved cluster."""

from __future__ import annotations

import pytest

from rackwright.errors import RackwrightError
from rackwright.model.cluster import LabSize
from rackwright.model.types import Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.mariadb.options import MariadbOptions
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.placement import release_on
from tests.unit.roles.fake_host import errors_in
from tests.unit.roles.slurm_clusters import HEAD_SKU, cluster, dgx, lab, node, small


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"partition": {}}, "Extra inputs are not permitted"),
        ({"partitions": {}}, "Dictionary should have at least 1 item after validation, not 0"),
        ({"partitions": {"a": {}}}, "exactly one partition must be the default, but none is"),
        (
            {"partitions": {"a": {"default": True}, "b": {"default": True}}},
            "exactly one partition must be the default, not a and b",
        ),
        (
            {"partitions": {"a": {"def_mem_per_cpu_mib": 1, "def_mem_per_gpu_mib": 1}}},
            "def_mem_per_cpu_mib and def_mem_per_gpu_mib exclude each other in Slurm; set one of them",
        ),
        (
            {"partitions": {"a": {"allow_accounts": ["x"], "deny_accounts": ["y"]}}},
            "deny_accounts is ignored where allow_accounts is set; set one of them",
        ),
        (
            {"packages": {"source": "schedmd"}},
            "packages from schedmd need `release`, which a distribution does not determine",
        ),
        (
            {"timeouts": {"message": 60}},
            "unkillable_step is 180 s, but Slurm wants at least five times message (300 s)",
        ),
        (
            {"packages": {"release": "20.11"}},
            "Input should be '22.05', '23.02', '23.11', '24.05', '24.11', '25.05', '25.11' or '26.05'",
        ),
        ({"accounts": {"Physics": {}}}, "String should match pattern '^[a-z][a-z0-9_.-]{0,39}$'"),
        (
            {"partitions": {"a": {"default": True, "max_time": "1 month"}}},
            "Not a valid time.",
        ),
        ({"accounts": {"a": {"description": "a|b"}}}, "String should match pattern '^[^|\"\\\\\\n]*$'"),
        ({"memory_headroom_percent": 60}, "Input should be less than or equal to 50"),
        ({"qos": {"a": {"flags": ["Fast"]}}}, None),
    ],
)
def test_options_that_are_refused(given, sentence):
    (message,) = errors_in(SlurmOptions, given)
    assert sentence is None or message == sentence


def test_a_release_that_yaml_reads_as_a_number():
    assert SlurmOptions.model_validate({"packages": {"release": 24.11}}).packages.release == "24.11"


def found(cluster):
    return list(cluster.primary.options["slurm"].problems(cluster))


def of(given):
    return SlurmOptions.model_validate(given)


MAIN = {"default": True}
SHARED_STATE = {
    "state_dir": "/shared/slurm",
    "state_mount": {"path": "/shared", "source": "nfs1:/export/slurm", "fstype": "nfs4"},
}


@pytest.mark.parametrize("make", [lab, dgx, small])
def test_no_problem(make):
    assert found(make()) == []


@pytest.mark.parametrize(
    ("make", "given", "problems"),
    [
        (
            lab,
            {"partitions": {"main": {**MAIN, "nodes": "wroker1"}}},
            [("partitions.main.nodes", "wroker1 is not declared under nodes.", "did you mean `worker1`?")],
        ),
        (
            lab,
            {"partitions": {"main": {**MAIN, "nodes": "head1"}}},
            [
                (
                    "partitions.main.nodes",
                    "head1 is not a worker and runs no jobs.",
                    "give it the role `worker`",
                )
            ],
        ),
        (
            lab,
            {"partitions": {"main": {**MAIN, "nodes": "worker[2-1]"}}},
            [("partitions.main.nodes", "The range runs backwards.", "write `1-2`")],
        ),
        (
            lab,
            {"partitions": {"main": {**MAIN, "qos": "hihg", "allow_accounts": ["x"]}}, "qos": {"high": {}}},
            [
                ("partitions.main.qos", "There is no QOS hihg.", "did you mean `high`?"),
                ("partitions.main.allow_accounts[0]", "There is no account x.", None),
            ],
        ),
        (
            lab,
            {"partitions": {"main": {**MAIN, "deny_accounts": ["burnin"]}}},
            [
                (
                    "partitions.main.deny_accounts",
                    "The account burnin must not be denied: verify and burn-in use it.",
                    None,
                )
            ],
        ),
        (
            lab,
            {"accounts": {"a": {"parent": "b"}, "b": {"parent": "a"}, "root": {}}},
            [
                ("accounts.a.parent", "The account a is its own ancestor.", None),
                ("accounts.b.parent", "The account b is its own ancestor.", None),
                ("accounts.root", "The account root is Slurm's own.", "choose another name"),
            ],
        ),
        (
            lab,
            {
                "accounts": {"a": {"parent": "z", "qos": ["normal"], "default_qos": "high"}},
                "qos": {"high": {}},
            },
            [
                ("accounts.a.parent", "There is no account z.", None),
                ("accounts.a.default_qos", "high is not among the QOS the account may use.", None),
            ],
        ),
        (
            lab,
            {
                "users": {
                    "ada": {"default_account": "a", "accounts": ["b"]},
                    "root": {"default_account": "root"},
                }
            },
            [
                ("users.ada.default_account", "There is no account a.", None),
                ("users.ada.accounts[0]", "There is no account b.", None),
                ("users.root", "The user root is Slurm's own.", None),
            ],
        ),
        (
            lab,
            {"qos": {"a": {"preempt": ["a", "b"]}}, "preempt": "qos"},
            [
                ("qos.a.preempt[1]", "There is no QOS b.", None),
                ("qos.a.preempt", "The QOS a cannot preempt itself.", None),
            ],
        ),
        (
            lab,
            {"qos": {"a": {"preempt": ["normal"]}}},
            [("qos.a.preempt", "QOS preempt each other only with `preempt: qos`.", None)],
        ),
        (
            lab,
            {"preempt": "partition_prio", "preempt_mode": "OFF"},
            [("preempt_mode", "With preempt partition_prio, preempt_mode cannot be OFF.", "e.g. REQUEUE")],
        ),
        (
            lab,
            {"memory_headroom_mib": 3000},
            [("memory_headroom_mib", "None of worker1's 2048 MiB is left for jobs.", None)],
        ),
        (
            lab,
            {"mem_spec_limit_mib": 1945},
            [("mem_spec_limit_mib", "None of worker1's 2048 MiB is left for jobs.", None)],
        ),
        (
            lab,
            {"core_spec_count": 2},
            [("core_spec_count", "worker1 has 2 cores, so no core is left for jobs.", None)],
        ),
        (
            lab,
            {"backups": ["head1", "worker1", "haed1"], **SHARED_STATE},
            [
                ("backups[0]", "head1 is the primary head, not a backup of it.", None),
                ("backups[1]", "worker1 is not a head of this cluster.", None),
                ("backups[2]", "haed1 is not a head of this cluster.", "did you mean `head1`?"),
            ],
        ),
        (
            small,
            {"topology": "tree"},
            [
                (
                    "topology",
                    "node[1-3] has no declared switch, which the tree topology needs.",
                    "`switch: leaf1`",
                )
            ],
        ),
        (
            small,
            {"topology": "block"},
            [("topology", "node[1-3] has no declared rack, which the block topology needs.", "`rack: r01`")],
        ),
        (
            dgx,
            {"topology": "block", "block_sizes": [9, 18, 27]},
            [
                ("block_sizes[0]", "The smallest block has 8 nodes, fewer than 9.", None),
                ("block_sizes[2]", "27 is not 18 times a power of two.", "e.g. 36 or 72"),
            ],
        ),
        (
            lambda slurm: dgx(slurm, os=os_release("ubuntu-24.04")),
            {"topology": "block"},
            [("topology", "The block topology needs Slurm 24.05 or newer.", "tree, or newer packages")],
        ),
        (
            lambda slurm: dgx(slurm, os=os_release("ubuntu-22.04")),
            {},
            [
                (
                    "packages.release",
                    "ubuntu-22.04 ships Slurm 21.08, which cannot use cgroup v2.",
                    "take packages from SchedMD: `packages: {source: schedmd, release: '26.05'}`",
                )
            ],
        ),
        (
            lab,
            {"accounting": {"database": "other_db"}},
            [
                (
                    "accounting.database",
                    "The mariadb role creates slurm_acct_db, but slurmdbd would use other_db.",
                    "set database in the mariadb section to the same",
                )
            ],
        ),
    ],
)
def test_problem(make, given, problems):
    assert found(make(of(given))) == problems


def test_backups_need_a_shared_state_folder():
    heads = [node(f"h{i}", f"10.0.0.{i}", "head", primary=i == 1) for i in (1, 2)]
    made = cluster("c", *heads, node("w", "10.0.0.9", "worker"), slurm=of({"backups": ["h2"]}))
    assert [path for path, _, _ in found(made)] == ["state_mount"]
    shared = of({"backups": ["h2"], **SHARED_STATE})
    assert found(cluster("c", *heads, node("w", "10.0.0.9", "worker"), slurm=shared)) == []


def test_a_slurm_release_that_is_not_known_has_to_be_declared():
    unknown = os_release("rocky-10")
    assert found(dgx(of({}), os=unknown)) == [
        (
            "packages.release",
            "head1 runs Slurm, but the Slurm release of rocky-10 is unknown.",
            "declare it: `packages: {source: schedmd, release: '26.05'}`",
        )
    ]
    declared = of({"packages": {"source": "schedmd", "release": "25.11"}})
    assert found(dgx(declared, os=unknown)) == []
    with pytest.raises(RackwrightError, match="The Slurm release of rocky-10 is unknown"):
        release_on(dgx(of({}), os=unknown).primary, of({}))


def test_no_daemon_is_newer_than_its_controller():
    old = node("head1", "10.0.0.1", "head", primary=True, os=os_release("debian-12"))
    ((path, sentence, _),) = found(cluster("c", old, node("w1", "10.0.0.2", "worker")))
    assert path == "packages.release"
    assert sentence == (
        "w1 would run Slurm 24.11, newer than 22.05 on head1; no daemon may be newer than its controller."
    )


def test_containers_and_machines_do_not_mix():
    made = cluster(
        "c",
        node("head1", "10.0.0.1", "head", primary=True),
        node("w1", "10.0.0.2", "worker"),
        node("w2", "10.0.0.3", "worker", platform=Platform.CONTAINER, lab=LabSize(cpus=1, memory_mib=900)),
    )
    ((path, sentence, _),) = found(made)
    assert path == ""
    assert sentence.startswith("w2 cannot confine jobs in cgroups but the other workers can;")


def test_a_node_of_its_own_mind():
    made = small()
    stubborn = SlurmOptions(max_job_count=5_000, pam_adopt=False)
    assert list(stubborn.problems(made)) == [
        (
            "max_job_count",
            "max_job_count must be the same on every node.",
            "move it to the slurm section of the cluster",
        )
    ]


def test_the_database_is_not_compared_when_it_is_elsewhere():
    made = small(of({"accounting": {"storage_host": "db.example.org", "database": "other"}}))
    assert found(made) == []
    assert MariadbOptions().database == SlurmOptions().accounting.database


def test_a_head_without_workers_has_no_shares_to_compute():
    alone = cluster("c", node("head1", "10.0.0.1", "head", primary=True, sku=HEAD_SKU))
    assert found(alone) == []
