"""Checks of the slurm_on_kubernetes role: each one passes, fails and cannot know."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex

import pytest

from rackwright.kubernetes.commands import KUBECTL, compare
from rackwright.roles.slurm_on_kubernetes import declared, slurm_checks, texts, verify
from rackwright.roles.slurm_on_kubernetes.places import places
from rackwright.roles.slurm_on_kubernetes.verify import CHECKS
from rackwright.secrets.secret import Secret
from rackwright.status import Status
from rackwright.workload.slurm.pods import ETC
from rackwright.workload.slurm.records import LIMIT_COLUMNS, QOS_COLUMNS, read_command
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.slurm_pods import cluster

MADE = cluster({"network": "pod"})
OPTIONS = MADE.primary.options["slurm_on_kubernetes"]
KEY = b"k" * 128
PODS = f"{KUBECTL} get pods --namespace slurm --selector app.kubernetes.io/name=slurm -o json"
OBJECTS = f"sh -c {shlex.quote(compare('slurm_on_kubernetes', declared.objects(OPTIONS, MADE)))}"
HOUR = "date -u -d '1 hour ago' +%Y-%m-%dT%H:%M:%SZ"
NOW = {HOUR: "2026-11-28T11:00:00Z\n"}
LOGIN = f"{KUBECTL} exec --namespace slurm deployment/login --container login --"
PING = f"timeout 30 {LOGIN} scontrol ping"
NODES = f"timeout 30 {LOGIN} scontrol show node -o"
LOADED = f"{KUBECTL} exec --namespace slurm slurmctld-0 --container slurmctld -- cat /run/rackwright/loaded"
READ = (
    f"{KUBECTL} exec --namespace slurm slurmdbd-0 --container slurmdbd -- sh -c "
    f"{shlex.quote(read_command('lab', local=False))}"
)
SRUN = (
    f"timeout 100 {LOGIN} srun -Q -A burnin --immediate=30 -t 2 -J rackwright-verify --mem=64 --ntasks-per-node=1 "
    "-p main -N 2 -w 'worker[1-2]' sh -c 'echo rackwright-job $SLURM_JOB_ID $SLURMD_NODENAME'"
)
GREETED = "rackwright-job 7 worker1\nrackwright-job 7 worker2\n"
ROW = f"{LOGIN} sh -c {shlex.quote(slurm_checks._ROW)} row 7"
DAEMONS = (
    ("mariadb-0", "mariadb", "cp1"),
    ("slurmdbd-0", "slurmdbd", "cp1"),
    ("slurmctld-0", "slurmctld", "cp1"),
    ("login-5d", "login", "cp1"),
    ("slurmd-worker1-x", "slurmd", "worker1"),
    ("slurmd-worker2-y", "slurmd", "worker2"),
)


def pod(name, daemon, node, **seeded):
    """One pod as kubectl prints it; `seeded` changes what is in it."""
    names = [daemon] if daemon == "mariadb" else [daemon, "munged"]
    state = seeded.get("state", {"running": {"startedAt": seeded.get("started", "2026-11-28T11:30:00Z")}})
    return {
        "metadata": {
            "name": name,
            "labels": {"rackwright.dev/slurm": daemon},
            "annotations": {
                "rackwright.dev/template": seeded.get("template", texts.template(OPTIONS, MADE, daemon))
            },
        },
        "spec": {"nodeName": node},
        "status": {
            "conditions": [{"type": "Ready", "status": seeded.get("ready", "True")}],
            "containerStatuses": [
                {"name": one, "restartCount": seeded.get("restarts", 0), "state": state} for one in names
            ],
        },
    }


def listed(changed=None, without=(), more=(), **seeded):
    """kubectl's answer: all pods, one of them with a seeded fault."""
    items = [
        pod(*one, **(seeded if one[0] == changed else {}))
        for one in (*DAEMONS, *more)
        if one[0] not in without
    ]
    return {PODS: json.dumps({"items": items})}


def sums(name, container, digests):
    """sha256sum in a pod."""
    command = f"{KUBECTL} exec --namespace slurm {name} --container {container} -- sha256sum " + " ".join(
        digests
    )
    return {command: "".join(f"{digest}  {path}\n" for path, digest in digests.items())}


def in_pods(**seeded):
    """Slurm's files in each pod; `seeded`: other digests by file."""
    files = texts.config(OPTIONS, MADE)
    wanted = {f"{ETC}/{name}": hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    found = {}
    for name, daemon, _ in DAEMONS:
        if daemon in ("slurmctld", "slurmd", "login"):
            one = sums(name, daemon, wanted)
            if name == seeded.get("pod"):
                one = {
                    command: text.replace(wanted[seeded["file"]], "0" * 64) for command, text in one.items()
                }
            found |= one
    return found


def keys(other=None, key=KEY):
    """The munge key in each pod that has munged."""
    found = {}
    for name, daemon, _ in DAEMONS:
        if daemon != "mariadb":
            value = b"other" if name == other else key
            found |= sums(name, "munged", {"/etc/munge/munge.key": hashlib.sha256(value).hexdigest()})
    return found


def shown(name, state="IDLE", cpus=2, memory=1945, gres="(null)"):
    return (
        f"NodeName={name} Arch=x86_64 CPUTot={cpus} RealMemory={memory} State={state} Gres={gres} "
        f"NodeAddr={name} Partitions=main\n"
    )


MEMORY = next(iter(MADE.primary.options["slurm"].pod_nodes(MADE, places(OPTIONS, MADE)).values())).memory_mib
READY = shown("worker1", memory=MEMORY) + shown("worker2", memory=MEMORY)


def recorded(user="ada"):
    """slurmdbd's records as sacctmgr prints them."""
    limits = "|".join("1" if column == "fairshare" else "" for column in LIMIT_COLUMNS)
    normal = "|".join("normal" if column == "description" else "" for column in QOS_COLUMNS)
    lines = [
        "# cluster", "lab",
        "# qos", f"normal|{normal}",
        "# account", "root|default root account|root", "research|research|root",
        "burnin|acceptance and burn-in runs|root",
        "# user", "root|root|Administrator", f"{user}|research|None",
        "# association",
        f"root||||{limits}", f"root|root|||{limits}",
        f"research|||root|{limits}", f"burnin|||root|{limits}",
        f"burnin|root|||{limits}", f"research|{user}|||{limits}",
        "# tres", "cpu|", "mem|", "# complete",
    ]  # fmt: skip
    return {READ: "\n".join(lines) + "\n"}


@pytest.fixture(autouse=True)
def store(monkeypatch):
    """A secrets store with the munge key."""

    class Store:
        def get(self, name):
            return Secret(name, base64.b64encode(KEY).decode())

    monkeypatch.setattr(verify, "store_of", lambda _: Store())


PASSES = [
    ("Slurm's objects in Kubernetes are as declared", {OBJECTS: "as declared\n"}),
    ("every pod of Slurm is ready", listed()),
    ("no container of Slurm was started again", {**listed(), **NOW}),
    ("pods of Slurm have the declared template", listed()),
    ("Slurm's files in the pods are as declared", {**listed(), **in_pods()}),
    ("slurmctld's pod has loaded the declared files", {LOADED: texts.digest(OPTIONS, MADE) + "\n"}),
    ("the munge key is the declared one in every pod", {**listed(), **keys()}),
    ("slurmctld answers the login pod", {PING: "Slurmctld(primary) at slurmctld-0 is UP\n"}),
    ("every node with slurmd in a pod is ready with its declared hardware", {NODES: READY}),
    ("accounts, users and QOS in slurmdbd's pod are as declared", recorded()),
    ("a job across the pods runs and is accounted for",
     {SRUN: GREETED, ROW: "7|COMPLETED|0:0|worker[1-2]\n"}),
]  # fmt: skip
FAILS = [
    ("Slurm's objects in Kubernetes are as declared", {OBJECTS: "v1.ConfigMap.slurm.slurm-config differs\n"},
     "v1.ConfigMap.slurm.slurm-config differs"),
    ("every pod of Slurm is ready",
     listed("slurmdbd-0", ready="False", state={"waiting": {"reason": "ImagePullBackOff"}}),
     "slurmdbd-0 is not ready (ImagePullBackOff)"),
    ("every pod of Slurm is ready", listed(without=("slurmctld-0",)), "0 pods of slurmctld, not 1"),
    ("every pod of Slurm is ready", listed(without=("slurmd-worker2-y",)), "worker2 has no pod of slurmd"),
    ("every pod of Slurm is ready", listed(more=(("slurmd-old", "slurmd", "worker9"),)),
     "worker9 has a pod of slurmd that is not declared"),
    ("no container of Slurm was started again", {**listed("slurmctld-0", restarts=3), **NOW},
     "slurmctld of slurmctld-0 was started again 3 times; munged of slurmctld-0 was started again 3 times"),
    ("pods of Slurm have the declared template", listed("slurmd-worker1-x", template="0123456789abcdef"),
     "slurmd-worker1-x has an earlier template"),
    ("Slurm's files in the pods are as declared",
     {**listed(), **in_pods(pod="slurmd-worker2-y", file=f"{ETC}/slurm.conf")},
     "/etc/slurm/slurm.conf in slurmd-worker2-y is another one"),
    ("slurmctld's pod has loaded the declared files", {LOADED: "0" * 64},
     "slurmctld has not loaded the declared files"),
    ("the munge key is the declared one in every pod", {**listed(), **keys("slurmd-worker1-x")},
     "another munge key than the declared one in slurmd-worker1-x"),
    ("slurmctld answers the login pod", {PING: (1, "Slurmctld(primary) at slurmctld-0 is DOWN\n", "")},
     "Slurmctld(primary) at slurmctld-0 is DOWN"),
    ("every node with slurmd in a pod is ready with its declared hardware",
     {NODES: READY.replace("State=IDLE", "State=DOWN", 1)}, "worker1 is DOWN"),
    ("every node with slurmd in a pod is ready with its declared hardware",
     {NODES: READY.replace("CPUTot=2", "CPUTot=1", 1)}, "worker1 has CPUs 1, not 2"),
    ("every node with slurmd in a pod is ready with its declared hardware",
     {NODES: READY.replace("Gres=(null)", "Gres=gpu:h100:8", 1)}, "worker1 has Gres gpu:h100:8, not none"),
    ("every node with slurmd in a pod is ready with its declared hardware",
     {NODES: shown("worker1", memory=MEMORY)}, "worker2 is unknown to slurmctld"),
    ("accounts, users and QOS in slurmdbd's pod are as declared", recorded("bob"),
     "user ada in research: missing, not defaultaccount=research adminlevel=none fairshare=1"),
    ("a job across the pods runs and is accounted for", {SRUN: "rackwright-job 7 worker1\n"},
     "the job in main did not run on worker2"),
    ("a job across the pods runs and is accounted for", {SRUN: GREETED, ROW: "\n"},
     "job 7 ran, but sacct has no record of it"),
    ("a job across the pods runs and is accounted for", {SRUN: GREETED, ROW: "7|FAILED|1:0|worker[1-2]\n"},
     "job 7 ran, but sacct has it as FAILED, exit code 1:0"),
    ("a job across the pods runs and is accounted for", {SRUN: GREETED, ROW: "7|COMPLETED|0:0|worker1\n"},
     "job 7 ran on worker[1-2], but sacct reports worker1"),
    ("a job across the pods runs and is accounted for", {SRUN: (1, "", "srun: error: Invalid account\n")},
     "srun in main exited 1: srun: error: Invalid account"),
]  # fmt: skip
NAMES = tuple(check.name for check in CHECKS)


def result(name, answers, always=None):
    return judged("slurm_on_kubernetes", CHECKS, name, MADE, MADE.primary, FakeHost(answers, always))


def test_every_check_has_its_cases():
    assert set(NAMES) == {case[0] for case in PASSES} == {case[0] for case in FAILS}


@pytest.mark.parametrize(("name", "answers"), PASSES, ids=[case[0] for case in PASSES])
def test_passes(name, answers):
    found = result(name, answers)
    assert (found.status, bool(found.evidence)) == (Status.PASS, True), found


@pytest.mark.parametrize(("name", "answers", "evidence"), FAILS)
def test_fails(name, answers, evidence):
    found = result(name, answers)
    assert (found.status, found.evidence) == (Status.FAIL, evidence)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "always", [None, "", "rubbish\n", (1, "", "The connection to the server 10.0.0.1:6443 was refused")]
)
def test_what_cannot_be_read_is_unknown(name, always):
    found = result(name, {}, always)
    if (name, always) == ("Slurm's objects in Kubernetes are as declared", "rubbish\n"):
        return  # each line is a difference there
    if name == "a job across the pods runs and is accounted for" and always in ("", "rubbish\n"):
        assert found.status is Status.FAIL  # srun succeeded, and no task greeted
        return
    assert found.status is Status.UNKNOWN, found


def test_a_restart_of_yesterday_is_a_warning():
    yesterday = listed("slurmctld-0", restarts=1, started="2026-11-27T11:30:00Z")
    found = result("no container of Slurm was started again", {**yesterday, **NOW})
    assert found.status is Status.WARN
    assert found.evidence.startswith(
        "more than an hour ago: slurmctld of slurmctld-0 was started again 1 times"
    )


def test_no_report_shows_a_digest_of_the_munge_key():
    found = result("the munge key is the declared one in every pod", {**listed(), **keys("login-5d")})
    assert hashlib.sha256(KEY).hexdigest() not in found.evidence


def test_a_busy_cluster_is_unknown():
    busy = (1, "", "srun: error: Unable to allocate resources: Requested nodes are busy\n")
    found = result("a job across the pods runs and is accounted for", {SRUN: busy})
    assert found.status is Status.UNKNOWN


def test_checks_are_the_primary_heads():
    assert claimed("slurm_on_kubernetes", CHECKS, MADE.nodes[1]) == ()
    slinky = cluster({"flavour": "slinky"})
    assert claimed("slurm_on_kubernetes", CHECKS, slinky.primary) == (NAMES[0],)
