"""The slurm role's checks: each seen to pass, to fail and not to know.

Outputs are of a rack of Debian 13 containers with Slurm 24.11.5, recorded 2026-11-20, but for
`RESERVED_GPU`, which is made after Slurm's documentation.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from rackwright.claims.check import Undetermined
from rackwright.osfamily.known import os_family
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.slurm import cluster_checks, reading, service_checks, texts
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.verify import CHECKS, parse_mpi_plugins
from rackwright.status import Status
from rackwright.workload.slurm.records import read_command
from tests.unit.roles.fake_facts import account, file, files, group, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.slurm_clusters import DGX_SKU, cluster, dgx, lab, node, small

RECORDED = Path(__file__).parent / "recorded" / "slurm"
ELSEWHERE = (*service_checks.NODE_CHECKS, *service_checks.CLUSTER_CHECKS)
HERE = tuple(check.name for check in CHECKS if check.name not in {other.name for other in ELSEWHERE})
"""Those of test_slurm_services.py are tested there."""
PARTITIONS = {
    "partitions": {
        "main": {"nodes": "worker[1-2]", "default": True, "max_time": "2-00:00:00"},
        "fast": {
            "nodes": "worker1",
            "max_time": "01:00:00",
            "priority_tier": 10,
            "qos": "high",
            "allow_accounts": ["research"],
        },
    },
    "qos": {"high": {}},
    "accounts": {"research": {}},
}
LAB = lab(SlurmOptions.model_validate(PARTITIONS))
HEAD, WORKER = LAB.primary, LAB.by_name["worker1"]
METAL = dgx()
GPU = METAL.by_name["gpu001"]


def recorded(name):
    return (RECORDED / name).read_text()


def result(name, answers, made=LAB, where=None, always=None):
    host = FakeHost(answers, always)
    return judged("slurm", CHECKS, name, made, where or made.primary, host)


def password_file(mode, owner, group):
    """The host answers with the file's digest alone, so a check that reads its password cannot pass."""
    return file("/etc/slurm/slurmdbd.conf", "StoragePass=x", mode, owner, group, digest_only=True)


SHARED = texts.shared_files(LAB, LAB.primary.options["slurm"])
ADOPT = {
    "/etc/pam.d/sshd": texts.sshd_pam(os_family("debian")),
    "/etc/security/access-slurm.conf": texts.access_conf(METAL, METAL.primary.options["slurm"]),
}
MODULE = "sh -c 'ls /lib/*/security/pam_slurm_adopt.so /lib*/security/pam_slurm_adopt.so'"
TMP = "stat -c '%d:%i' /tmp"
JOB_TMP = "srun -Q -A burnin --immediate=20 -t 1 -n 1 --mem=64 -p main -w gpu001 stat -c '%d:%i' /tmp"
NODES = "timeout 30 scontrol show node -o"
PARTS = "timeout 30 scontrol show partition -o"
TOPOLOGY = "timeout 30 scontrol show topology"
BOOKS = f"sh -c {shlex.quote(read_command('lab'))}"
JOB = (
    "timeout 100 srun -Q -A burnin --immediate=30 -t 2 -J rackwright-verify --mem=64 "
    "--ntasks-per-node=1 -p main -N 2 -w 'worker[1-2]' "
)
GREET = JOB + "sh -c 'echo rackwright-job $SLURM_JOB_ID $SLURMD_NODENAME'"
MPI = f"{JOB.replace('--mem=64', '--mem=648')}--mpi=pmix {shlex.join(HpcStackOptions().mpi_command(WORKER))}"
GIVEN = JOB + "--gres=gpu:1 " + cluster_checks._GIVEN
GPUS = LAB.model_copy(
    update={
        "nodes": tuple(
            one.model_copy(update={"sku": DGX_SKU}) if one.name.startswith("worker") else one
            for one in LAB.nodes
        )
    }
)
ROW = f"sh -c {shlex.quote(cluster_checks._ROW)} row 18"
GREETED = recorded("jobs.txt")
TREE = recorded("topology.txt").replace("slxhead", "worker1").replace("slxw1", "worker2")
TWO_LEAVES = lab(leaves=("r1", "r2"))
SAVING = dgx(
    SlurmOptions.model_validate(
        {"power_saving": {"suspend_program": "/opt/site/off", "resume_program": "/opt/site/on"}}
    )
)
OFF, ON = (f"runuser -u slurm -- test -f /opt/site/{word} -a -x /opt/site/{word}" for word in ("off", "on"))
CONTAINED = (
    recorded("config.txt")
    .replace("proctrack/linuxproc", "proctrack/cgroup")
    .replace("jobacct_gather/linux", "jobacct_gather/cgroup")
    .replace("PrologFlags             = (null)", "PrologFlags             = Alloc,Contain")
)
PRIVATE = recorded("config.txt").replace(
    "PrivateData             = none", "PrivateData             = jobs,usage"
)
QOS_ONLY = "# cluster\nlab\n# qos\nnormal|Normal QOS default|0||cluster|00:00:00||1.000000||||||||\n# account\nburnin|acceptance and burn-in runs|root\nroot|default root account|root\n# user\nroot|root|Administrator\n# association\nroot||||1||||||||normal|\nroot|root|||1|||||||||\nburnin|||root|1|||||||||\nburnin|root|||1|||||||||\n# tres\ncpu|\ngres|gpu\n# complete\n"

LOGROTATE = (
    "reading config file /etc/logrotate.d/slurmd\nReading state from file: /var/lib/logrotate/status\n"
)
PASSES = [
    ("user slurm has its declared ids", account("slurm", 64030), LAB, WORKER),
    (
        "a job that requests a GPU gets one",
        {GIVEN: "rackwright-gpu worker1 0\nrackwright-gpu worker2 0\n"},
        GPUS,
        HEAD,
    ),
    ("Slurm is the declared release", {"sinfo --version": "slurm-wlm 24.11.5\n"}, LAB, WORKER),
    (
        "Slurm's files are as declared",
        files(SHARED),
        LAB,
        WORKER,
    ),
    ("slurmdbd is running", unit("slurmdbd.service"), LAB, HEAD),
    (
        "only slurm can read slurmdbd.conf",
        password_file("600", "slurm", "slurm"),
        LAB,
        HEAD,
    ),
    ("slurmctld is running", unit("slurmctld.service"), LAB, HEAD),
    (
        "slurmctld can write its state",
        {"runuser -u slurm -- test -d /var/lib/slurm/slurmctld -a -w /var/lib/slurm/slurmctld": ""},
        LAB,
        HEAD,
    ),
    (
        "slurmctld can run the power saving programs",
        {OFF: "", ON: ""},
        SAVING,
        SAVING.primary,
    ),
    ("users see only the declared data of each other", {"scontrol show config": PRIVATE}, LAB, HEAD),
    ("slurmd is running", unit("slurmd.service"), LAB, WORKER),
    (
        "Slurm's logs are rotated",
        {
            "logrotate --debug /etc/logrotate.d/slurmd": (0, "", LOGROTATE),
            **unit("logrotate.timer"),
        },
        LAB,
        WORKER,
    ),
    ("Slurm has a PMIx plugin", {"srun --mpi=list": recorded("mpi_list.txt")}, LAB, WORKER),
    ("jobs are confined by cgroups", {"scontrol show config": CONTAINED}, METAL, GPU),
    ("each job has a private /tmp", {TMP: "65025:12\n", JOB_TMP: "65025:977\n"}, METAL, GPU),
    (
        "ssh to a worker requires a job there",
        {
            **files(ADOPT),
            MODULE: (2, "/lib/x86_64-linux-gnu/security/pam_slurm_adopt.so\n", "ls: no such file"),
        },
        METAL,
        GPU,
    ),
    ("slurmctld answers", {"timeout 20 scontrol ping": recorded("ping.txt")}, LAB, HEAD),
    ("every declared node is ready with its declared hardware", {NODES: recorded("nodes.txt")}, LAB, HEAD),
    ("partitions are as declared", {PARTS: recorded("partitions.txt")}, LAB, HEAD),
    ("the topology is as declared", {TOPOLOGY: TREE}, TWO_LEAVES, TWO_LEAVES.primary),
    ("accounts, users and QOS are as declared", {BOOKS: QOS_ONLY}, lab(), lab().primary),
    (
        "a job runs on every node and is accounted for",
        {GREET: GREETED, ROW: "18|COMPLETED|0:0|worker[1-2]\n"},
        LAB,
        HEAD,
    ),
    ("an MPI job spans the workers", {MPI: recorded("mpi.txt")}, LAB, HEAD),
]


def nodes_with(old, new):
    return {NODES: recorded("nodes.txt").replace(old, new, 1)}


FAILS = [
    ("user slurm has its declared ids", {**account("slurm", 999), **group("slurm", 64030)}, LAB, WORKER,
     "slurm has uid 999 and gid 64030, not 64030 and 64030"),
    ("user slurm has its declared ids", account("slurm", None), LAB, WORKER, "the user slurm does not exist"),
    ("Slurm is the declared release", {"sinfo --version": "slurm-wlm 22.05.8\n"}, LAB, WORKER,
     "Slurm is 22.05.8, but 24.11 is declared"),
    ("Slurm's files are as declared", files({**SHARED, "/etc/slurm/slurm.conf": "x"}),
     LAB, WORKER, "/etc/slurm/slurm.conf is not as declared: x"),
    ("Slurm's files are as declared",
     {**files(SHARED), **file("/etc/slurm/slurm.conf", SHARED["/etc/slurm/slurm.conf"], "666")},
     LAB, WORKER, "/etc/slurm/slurm.conf is 666 root:root, not 644 root:root"),
    ("Slurm's files are as declared",
     files({**SHARED, "/etc/slurm/slurm.conf": None, "/etc/slurm/gres.conf": "x"}),
     LAB, WORKER, "/etc/slurm/gres.conf exists but is not declared; /etc/slurm/slurm.conf is missing"),
    ("slurmdbd is running", unit("slurmdbd.service", "failed"), LAB, HEAD,
     "slurmdbd.service is failed"),
    ("slurmdbd is running", unit("slurmdbd.service", state="disabled"), LAB, HEAD,
     "slurmdbd.service is active but disabled: it does not start at boot"),
    ("only slurm can read slurmdbd.conf",
     password_file("644", "root", "root"), LAB, HEAD,
     "/etc/slurm/slurmdbd.conf is 644 root:root, not 600 slurm:slurm"),
    ("slurmctld is running", unit("slurmctld.service", "inactive"), LAB, HEAD,
     "slurmctld.service is inactive"),
    ("slurmctld is running", unit("slurmctld.service", state="disabled"), LAB, HEAD,
     "slurmctld.service is active but disabled: it does not start at boot"),
    ("slurmctld can write its state",
     {"runuser -u slurm -- test -d /var/lib/slurm/slurmctld -a -w /var/lib/slurm/slurmctld": (1, "", "")},
     LAB, HEAD, "user slurm cannot write /var/lib/slurm/slurmctld"),
    ("slurmctld can run the power saving programs", {OFF: "", ON: (1, "", "")}, SAVING, SAVING.primary,
     "user slurm cannot run /opt/site/on: nodes are powered off but not on again, or neither"),
    ("users see only the declared data of each other", {"scontrol show config": recorded("config.txt")}, LAB, HEAD,
     "users see jobs, usage of other users"),
    ("users see only the declared data of each other",
     {"scontrol show config": PRIVATE.replace("jobs,usage", "jobs,nodes,usage")}, LAB, HEAD,
     "users cannot see nodes of other users, which is not declared"),
    ("slurmd is running", unit("slurmd.service", "failed"), LAB, WORKER,
     "slurmd.service is failed"),
    ("slurmd is running", unit("slurmd.service", state="disabled"), LAB, WORKER,
     "slurmd.service is active but disabled: it does not start at boot"),
        (
        "Slurm's logs are rotated",
        {"logrotate --debug /etc/logrotate.d/slurmd": (1, "", "error: cannot stat /etc/logrotate.d/slurmd\n")},
        LAB,
        WORKER,
        "logrotate ignores /etc/logrotate.d/slurmd",
    ),
    (
        "Slurm's logs are rotated",
        {
            "logrotate --debug /etc/logrotate.d/slurmd": (0, "", LOGROTATE),
            **unit("logrotate.timer", "inactive"),
        },
        LAB,
        WORKER,
        "logrotate.timer is inactive",
    ),
    ("Slurm has a PMIx plugin", {"srun --mpi=list": "MPI plugin types are...\n\tnone\n\tpmi2\n"}, LAB, WORKER,
     "Slurm has no PMIx plugin, only none, pmi2"),
    ("jobs are confined by cgroups", {"scontrol show config": recorded("config.txt")}, METAL, GPU,
     "ProctrackType is proctrack/linuxproc; JobAcctGatherType is jobacct_gather/linux; PrologFlags is (null)"),
    ("each job has a private /tmp", {TMP: "65025:12\n", JOB_TMP: "65025:12\n"}, METAL, GPU,
     "a job sees the node's /tmp"),
    ("ssh to a worker requires a job there", files({**ADOPT, "/etc/pam.d/sshd": "x"}), METAL, GPU,
     "/etc/pam.d/sshd is not as declared: x"),
    ("ssh to a worker requires a job there", {**files(ADOPT), MODULE: (2, "", "ls")}, METAL, GPU,
     "pam_slurm_adopt.so is not installed, so users with a job are refused too"),
    ("slurmctld answers", {"timeout 20 scontrol ping": (1, "Slurmctld(primary) at head1 is DOWN\n", "")}, LAB,
     HEAD, "Slurmctld(primary) at head1 is DOWN"),
    ("every declared node is ready with its declared hardware",
     {NODES: recorded("nodes.txt").splitlines()[0] + "\n" + recorded("drained.txt")}, LAB, HEAD,
     "worker2 is DRAIN (burn-in: slow)"),
    ("every declared node is ready with its declared hardware", nodes_with("State=IDLE", "State=DOWN+NOT_RESPONDING"),
     LAB, HEAD, "worker1 is DOWN+NOT_RESPONDING"),
    ("every declared node is ready with its declared hardware", nodes_with("RealMemory=1945", "RealMemory=1800"),
     LAB, HEAD, "worker1 has MiB 1800, not 1945"),
    ("every declared node is ready with its declared hardware", nodes_with("CPUTot=2", "CPUTot=1"),
     LAB, HEAD, "worker1 has CPUs 1, not 2"),
    ("every declared node is ready with its declared hardware", nodes_with("Gres=(null)", "Gres=gpu:h100:8"),
     LAB, HEAD, "worker1 has Gres gpu:h100:8, not none"),
    ("every declared node is ready with its declared hardware", nodes_with("NodeName=worker1", "NodeName=w9"),
     LAB, HEAD, "worker1 is unknown to slurmctld; w9 is not declared"),
    ("partitions are as declared", {PARTS: recorded("partitions.txt").replace("MaxTime=2-00:00:00", "MaxTime=1:00:00")},
     LAB, HEAD, "MaxTime of partition main is 1:00:00, not 2-00:00:00"),
    ("partitions are as declared", {PARTS: recorded("partitions.txt").replace("PartitionName=fast", "PartitionName=x")},
     LAB, HEAD, "partition fast is missing; partition x is not declared"),
    ("the topology is as declared", {TOPOLOGY: TREE.replace("worker2", "worker3")}, TWO_LEAVES, TWO_LEAVES.primary,
     "r2 has worker3, not worker2"),
    ("the topology is as declared", {TOPOLOGY: TREE.splitlines()[0]}, TWO_LEAVES, TWO_LEAVES.primary, "r2 is missing"),
    ("accounts, users and QOS are as declared", {BOOKS: QOS_ONLY.replace("burnin|root|||1", "burnin|root|||5")},
     lab(), lab().primary, "user root in burnin: fairshare=5, not fairshare=1"),
    ("a job runs on every node and is accounted for",
     {GREET: (1, "", "srun: error: Unable to allocate resources: Invalid account\n")}, LAB, HEAD,
     "srun in main exited 1: srun: error: Unable to allocate resources: Invalid account"),
    ("a job runs on every node and is accounted for", {GREET: "rackwright-job 18 worker1\n"}, LAB, HEAD,
     "the job in main did not run on worker2"),
    ("a job runs on every node and is accounted for", {GREET: GREETED, ROW: "\n"}, LAB, HEAD,
     "job 18 ran, but sacct has no record of it"),
    ("a job runs on every node and is accounted for", {GREET: GREETED, ROW: "18|RUNNING|0:0|worker[1-2]\n"}, LAB,
     HEAD, "job 18 ran, but sacct has it as RUNNING, exit code 0:0"),
    ("a job runs on every node and is accounted for", {GREET: GREETED, ROW: "18|COMPLETED|0:0|worker1\n"}, LAB,
     HEAD, "job 18 ran on worker[1-2], but sacct reports worker1"),
    ("an MPI job spans the workers", {MPI: "rackwright-mpi 0 1 1 worker1\nrackwright-mpi 0 1 1 worker2\n"}, LAB,
     HEAD, "2 ranks of 2 answered, in worlds of [1]"),
    ("an MPI job spans the workers", {MPI: recorded("mpi.txt").replace("2 3 worker2", "2 4 worker2")}, LAB,
     HEAD, "the all-reduce over 2 ranks gave [3, 4]"),
    ("a job that requests a GPU gets one", {GIVEN: "rackwright-gpu worker1 0\nrackwright-gpu worker2 \n"}, GPUS,
     HEAD, "a job that requests a GPU sees none on worker2"),
    ("an MPI job spans the workers", {MPI: ""}, LAB, HEAD, "0 ranks of 2 answered, in worlds of []"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answers", "made", "where"), PASSES, ids=[case[0] for case in PASSES])
def test_passes(name, answers, made, where):
    found = result(name, answers, made, where)
    assert (found.status, bool(found.evidence)) == (Status.PASS, True), found


@pytest.mark.parametrize(
    ("name", "answers", "made", "where", "evidence"), FAILS, ids=[case[0] for case in FAILS]
)
def test_fails(name, answers, made, where, evidence):
    found = result(name, answers, made, where)
    assert (found.status, found.evidence) == (Status.FAIL, evidence)


_KNOWN = {name: (made, where) for name, _, made, where in PASSES}


@pytest.mark.parametrize("name", HERE)
def test_unknown_on_a_node_without_its_tools(name):
    made, where = _KNOWN[name]
    found = result(name, {}, made, where)
    assert (found.status, bool(found.evidence)) == (Status.UNKNOWN, True), found


@pytest.mark.parametrize("name", HERE)
def test_no_check_passes_on_what_it_cannot_read(name):
    made, where = _KNOWN[name]
    # Only the exit status shows what can be written or run.
    if name in ("slurmctld can write its state", "slurmctld can run the power saving programs"):
        return
    for rubbish in ("", "command not ready\n"):
        assert result(name, {}, made, where, always=rubbish).status not in (Status.PASS, Status.WARN)


def test_every_check_is_seen_to_pass_and_to_fail():
    assert set(HERE) == {case[0] for case in PASSES} == {case[0] for case in FAILS}


def test_a_busy_cluster_is_not_a_broken_one():
    busy = (1, "", "srun: error: Unable to allocate resources: Requested nodes are busy\n")
    for name, command in (
        ("a job runs on every node and is accounted for", GREET),
        ("an MPI job spans the workers", MPI),
    ):
        assert result(name, {command: busy}).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        (
            (126, "", "timeout: failed to run command 'sacctmgr': Permission denied\n"),
            "cannot run `timeout`: timeout: failed to run command 'sacctmgr': Permission denied",
        ),
        (
            (1, "", "sacctmgr: error: Connection refused\n"),
            f"`{cluster_checks._FIRST_QUESTION}` exited 1: sacctmgr: error: Connection refused",
        ),
        ("lab\n", "slurmdbd did not answer every query of sacctmgr"),
    ],
)
def test_books_that_cannot_be_read_are_unknown_and_the_evidence_says_why(answer, evidence):
    asked = {BOOKS: "# silent\n", cluster_checks._FIRST_QUESTION: answer}
    found = result("accounts, users and QOS are as declared", asked, lab(), lab().primary)
    assert (found.status, found.evidence) == (Status.UNKNOWN, evidence)


def test_mpi_is_out_of_scope_where_no_worker_has_it():
    found = result("an MPI job spans the workers", {}, METAL, METAL.primary)
    assert (found.status, found.evidence) == (
        Status.OUT_OF_SCOPE,
        "no role installs MPI on a worker (hpc_stack)",
    )


def test_gpus_are_out_of_scope_where_no_worker_has_any():
    found = result("a job that requests a GPU gets one", {}, LAB, HEAD)
    assert (found.status, found.evidence) == (Status.OUT_OF_SCOPE, "no worker has declared GPUs")


@pytest.mark.parametrize(
    "name",
    ["jobs are confined by cgroups", "each job has a private /tmp", "ssh to a worker requires a job there"],
)
def test_containers_have_no_cgroups_of_their_own(name):
    found = result(name, {}, LAB, WORKER)
    assert found.status is Status.OUT_OF_SCOPE
    assert found.evidence == "slurmd cannot own a cgroup v2 tree inside a container"


def test_who_claims_what():
    assert "slurmd is running" not in claimed("slurm", CHECKS, HEAD)
    assert "slurmdbd is running" not in claimed("slurm", CHECKS, WORKER)
    assert "ssh to a worker requires a job there" not in claimed("slurm", CHECKS, small().primary)
    assert "slurmctld is running" not in claimed("slurm", CHECKS, METAL.by_name["login1"])


def test_gpus_at_work_with_their_sockets():
    made = cluster(
        "c",
        node("head1", "10.0.0.1", "head", primary=True),
        node("gpu1", "10.0.0.2", "worker", sku=DGX_SKU),
    )
    reserved_gpu = (
        "NodeName=gpu1 CPUTot=224 Gres=gpu:h100:8(S:0-1) RealMemory=1992294 State=MIXED+RESERVED "
        "Partitions=main \n"
    )
    found = result("every declared node is ready with its declared hardware", {NODES: reserved_gpu}, made)
    assert (found.status, found.evidence) == (
        Status.PASS,
        "1 nodes ready with their declared CPUs, memory and Gres, 1 of them busy",
    )


def test_a_node_that_no_job_reaches_fails():
    given = {"partitions": {"main": {"nodes": "worker1", "default": True}}}
    made = lab(SlurmOptions.model_validate(given))
    found = result("a job runs on every node and is accounted for", {}, made)
    assert found.evidence == "worker2 is in no partition that is UP, so it gets no jobs"


def test_mpi_plugins_of_older_releases():
    older = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: pmix\nsrun: pmix_v4\n"
    assert parse_mpi_plugins(older) == {"none", "pmi2", "pmix", "pmix_v4"}


def test_a_line_of_nodes_that_cannot_be_read():
    with pytest.raises(Undetermined, match="`scontrol show node` does not print the CPUs and memory of x"):
        reading.parse_nodes("NodeName=x State=IDLE\n")
