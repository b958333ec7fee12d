"""The kubernetes_scheduling role: tenants, objects by release, Kueue's queues, and its checks, each with its fault."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from rackwright.kubernetes.commands import KUBECTL, compare
from rackwright.model.cluster import Cluster
from rackwright.roles.gpu_stack_k8s.options import GpuStackK8sOptions
from rackwright.roles.kubernetes_scheduling import shares
from rackwright.roles.kubernetes_scheduling.objects import objects
from rackwright.roles.kubernetes_scheduling.options import KubernetesSchedulingOptions
from rackwright.roles.kubernetes_scheduling.tenants import allowed_qos, tenants_of
from rackwright.roles.kubernetes_scheduling.verify import CHECKS
from rackwright.roles.slurm.options import SlurmOptions
from tests.kubernetes_schemas import mistakes
from tests.unit.roles.container_site import never_passes
from tests.unit.roles.fake_host import Answer, FakeHost, errors_in, judged, planned
from tests.unit.roles.kubernetes_gpu_sites import gpu_cluster

TENANTS: dict[str, Any] = {
    "accounts": {
        "physics": {"description": "Physics", "limits": {"grp_tres": {"gres/gpu": 12}}, "fairshare": 3},
        "lattice": {
            "parent": "physics",
            "limits": {"grp_tres": {"gres/gpu": 8, "cpu": 100}},
            "qos": ["normal"],
        },
        "chem_1": {"limits": {"grp_tres": {"gres/gpu": 4, "mem": 1048576}}},
    },
    "users": {
        "ada": {"default_account": "lattice"},
        "bob": {"default_account": "chem_1", "accounts": ["physics"], "admin": "administrator"},
    },
    "qos": {
        "normal": {"priority": 100},
        "urgent": {"priority": 1000, "preempt": ["normal"], "description": "Deadlines"},
    },
}
OPTIONS = KubernetesSchedulingOptions(
    **TENANTS, groups={"physics": ("hep",)}, name_prefix="oidc:", default_qos="normal"
)


def _site(options: KubernetesSchedulingOptions = OPTIONS, **changes: Any) -> Cluster:
    return gpu_cluster(
        kubernetes_scheduling=options, gpu_stack_k8s=GpuStackK8sOptions(), simulated=True, stack={}, **changes
    )


SITE = _site()
HEAD = SITE.by_name["head1"]
KUEUE = KubernetesSchedulingOptions(**TENANTS, kueue={})


def _found(options: KubernetesSchedulingOptions, kind: str, site: Cluster | None = None) -> dict[str, Any]:
    """Objects of a kind by name, or namespace/name."""
    return {
        "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"]))): item
        for item in objects(options, site or _site(options))
        if item["kind"] == kind
    }


def _sentences(options: KubernetesSchedulingOptions) -> list[tuple[str, str]]:
    return [(path, text) for path, text, _ in options.problems(_site(options))]


def _with(**changes: Any) -> KubernetesSchedulingOptions:
    return KubernetesSchedulingOptions(**{**TENANTS, **changes})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"accounts": {"Big": {}}}, "String should match pattern '^[a-z][a-z0-9_.-]{0,39}$'"),
        (
            {"accounts": {"a": {"limits": {"grp_tres": {"gres/gpu": -1}}}}},
            "Input should be greater than or equal to 0",
        ),
        ({"namespace_prefix": "A_"}, "String should match pattern '^([a-z][a-z0-9-]{0,20})?$'"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(KubernetesSchedulingOptions, given) == [sentence]


@pytest.mark.parametrize(
    ("changes", "path", "sentence"),
    [
        (
            {"accounts": {}, "users": {}},
            "accounts",
            "No account is declared, neither here nor in the role slurm.",
        ),
        (
            {"accounts": {"a": {"parent": "b"}}, "users": {}},
            "accounts.a.parent",
            "Account b is not declared.",
        ),
        (
            {"accounts": {"a": {"parent": "b"}, "b": {"parent": "a"}}, "users": {}},
            "accounts.a.parent",
            "The account a is above itself.",
        ),
        (
            {"accounts": {"a_b": {}, "a.b": {}}, "users": {}},
            "accounts.a.b",
            "The accounts a_b and a.b have the same namespace a-b.",
        ),
        (
            {"accounts": {"default": {}}, "users": {}},
            "accounts.default",
            "The namespace default belongs to Kubernetes.",
        ),
        ({"users": {"x": {"default_account": "biology"}}}, "users.x", "Account biology is not declared."),
        ({"groups": {"biology": ("x",)}}, "groups.biology", "Account biology is not declared."),
        ({"default_qos": "fast"}, "default_qos", "QOS fast is not declared."),
        (
            {"qos": {"normal": {"priority": 5, "preempt": ["low"]}, "low": {"priority": 5}}},
            "qos.normal.preempt",
            "normal cannot preempt low, whose priority is not lower: 5.",
        ),
        (
            {"qos": {"normal": {"priority": 2000000000}}},
            "qos.normal.priority",
            "The highest priority of a PriorityClass is 1000000000.",
        ),
        ({"kueue": {}}, "kueue", "Nothing applies Kueue, which the queues need."),
        (
            {"kueue": {}, "accounts": {"a": {"limits": {"grp_tres": {"gres/gpu:b200": 1}}}}, "users": {}},
            "accounts.a.limits.grp_tres",
            "No node of Kubernetes has GPUs of the type b200.",
        ),
        (
            {"kueue": {}, "accounts": {"a": {"limits": {"grp_tres": {"gres/gpu": 17}}}}, "users": {}},
            "accounts",
            "The accounts are guaranteed 17 GPUs of hgx-h100, which has 16.",
        ),
    ],
)
def test_mistakes_that_the_cluster_shows(changes, path, sentence):
    assert (path, sentence) in _sentences(_with(**changes))


def test_a_site_without_mistakes():
    assert _sentences(OPTIONS) == []


def test_what_kubernetes_keeps_differently():
    warned = [text for _, text, _ in OPTIONS.warnings(SITE)]
    assert warned == ["A quota counts the namespace of physics alone, and not the accounts below it."]
    more = _with(qos={**TENANTS["qos"], "low": {"priority": 1}})
    assert "Kubernetes lets urgent preempt low as well, since their priority is lower." in [
        text for _, text, _ in more.warnings(_site(more))
    ]


def test_accounts_of_slurm_serve_where_none_are_declared():
    slurm = SlurmOptions.model_validate(
        {
            "accounts": {"research": {"limits": {"grp_tres": {"gres/gpu": 4, "node": 2}}}},
            "users": {"ada": {"default_account": "research"}},
        }
    )
    empty = KubernetesSchedulingOptions()
    site = _site(empty, slurm=slurm)
    assert "slurm" in site.primary.options
    assert list(tenants_of(empty, site).accounts) == ["research"]
    assert _found(empty, "ResourceQuota", site)["research/account"]["spec"]["hard"] == {
        "requests.nvidia.com/gpu": "4"
    }


def test_quotas_are_the_limits():
    quotas = _found(OPTIONS, "ResourceQuota")
    assert quotas["lattice/account"]["spec"]["hard"] == {
        "requests.cpu": "100",
        "requests.nvidia.com/gpu": "8",
    }
    assert quotas["chem-1/account"]["spec"]["hard"]["requests.memory"] == "1048576Mi"
    assert quotas["lattice/refused-qos"]["spec"] == {
        "hard": {"pods": "0"},
        "scopeSelector": {
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]}]
        },
    }
    assert "chem-1/refused-qos" not in quotas


def test_a_qos_comes_from_the_next_account_above():
    tenants = tenants_of(_with(accounts={"a": {"qos": ["normal"]}, "b": {"parent": "a"}}), SITE)
    assert allowed_qos(tenants, "b") == {"normal"}


def test_priorities():
    classes = _found(OPTIONS, "PriorityClass")
    assert (classes["urgent"]["value"], classes["urgent"]["preemptionPolicy"]) == (
        1000,
        "PreemptLowerPriority",
    )
    assert (classes["normal"]["globalDefault"], classes["normal"]["preemptionPolicy"]) == (True, "Never")


def test_access():
    bindings = _found(OPTIONS, "RoleBinding")
    assert [one["name"] for one in bindings["physics/users"]["subjects"]] == ["oidc:bob", "oidc:hep"]
    assert [one["name"] for one in bindings["lattice/users"]["subjects"]] == ["oidc:ada"]
    assert bindings["lattice/administrators"]["roleRef"]["name"] == "admin"
    assert "lattice/operators" not in bindings


def test_what_older_releases_do_not_have():
    restricted = _with(pod_security="restricted")
    for version, labels in (("1.20.2", 1), ("1.34.2", 2)):
        namespaces = _found(restricted, "Namespace", _site(restricted, version=version))
        assert len(namespaces["lattice"]["metadata"]["labels"]) == labels


@pytest.mark.parametrize("release", ["1.20", "1.34", "1.37"])
def test_servers_of_each_release_accept_them(release):
    given = _with(pod_security="baseline", pods_max=50)
    assert mistakes(objects(given, _site(given, version=f"{release}.2")), release) == []


@pytest.mark.parametrize("api", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize("borrowing", [True, False])
def test_kueue_accepts_the_queues(api, borrowing):
    given = _with(kueue={"api": api, "borrowing": borrowing})
    assert mistakes(objects(given, _site(given)), "1.34") == []
    spec = _found(given, "ClusterQueue")["lattice"]["spec"]
    assert spec["cohort" if api == "v1beta1" else "cohortName"] == "physics"


def test_guaranteed_shares_follow_the_gpus():
    per_node = {"cpu": 224, "memory": 2097152, "nvidia.com/gpu": 8}
    assert shares.capacity(SITE) == {"hgx-h100": {key: 2 * value for key, value in per_node.items()}}
    assert shares.guaranteed({"gres/gpu": 4}, SITE) == {
        "hgx-h100": {"cpu": 112, "memory": 1048576, "nvidia.com/gpu": 4}
    }
    assert shares.guaranteed({"gres/gpu:h100": 2, "cpu": 5}, SITE)["hgx-h100"]["cpu"] == 5
    assert shares.guaranteed({"gres/gpu:h100": 2}, SITE)["hgx-h100"]["nvidia.com/gpu"] == 2


def _gpus(item: dict[str, Any]) -> dict[str, str]:
    (group,) = item["spec"]["resourceGroups"]
    return next(one for one in group["flavors"][0]["resources"] if one["name"] == "nvidia.com/gpu")


def test_shares_of_all_queues_add_up_to_the_cluster():
    queues, cohorts = _found(KUEUE, "ClusterQueue"), _found(KUEUE, "Cohort")
    guaranteed = {
        name: int(_gpus(item)["nominalQuota"])
        for name, item in {**queues, **cohorts}.items()
        if name != "physics"
    }
    assert guaranteed == {"lattice": 8, "chem-1": 4, "root": 0}
    assert int(_gpus(queues["physics"])["nominalQuota"]) == 0
    assert int(_gpus(cohorts["physics"])["nominalQuota"]) == 4
    assert cohorts["physics"]["spec"]["parentName"] == "root"
    assert queues["physics"]["spec"]["fairSharing"] == {"weight": "3"}
    assert _found(KUEUE, "LocalQueue")["chem-1/default"]["spec"] == {"clusterQueue": "chem-1"}
    assert _found(KUEUE, "ResourceFlavor")["hgx-h100"]["spec"]["nodeLabels"] == {
        "rackwright.dev/sku": "hgx-h100"
    }
    assert "lattice/account" not in _found(KUEUE, "ResourceQuota")


def test_a_hard_limit_borrows_nothing():
    hard = _with(kueue={"borrowing": False})
    assert _gpus(_found(hard, "ClusterQueue")["lattice"])["borrowingLimit"] == "0"
    assert _gpus(_found(hard, "Cohort")["physics"])["borrowingLimit"] == "0"
    assert "borrowingLimit" not in _gpus(_found(KUEUE, "ClusterQueue")["lattice"])


def test_kueues_configuration_has_fair_sharing():
    values = KUEUE.chart_values(SITE)["kueue"]["managerConfig"]["controllerManagerConfigYaml"]
    assert "fairSharing: {}" in values
    assert OPTIONS.chart_values(SITE) == {}


def test_the_plan():
    names = [one.name for one in planned(SITE, HEAD).operations if one.role == "kubernetes_scheduling"]
    assert names[-1] == "Apply the objects of kubernetes_scheduling"


OBJECTS = "accounts in Kubernetes are as declared"
QUOTAS = "quotas of accounts are in force"
CLASSES = "no other PriorityClass goes before the QOS"
FORMER = "namespaces of former accounts are gone"
QUEUES = "queues of accounts are active"
_GET = f"{KUBECTL} --request-timeout=30s get"


def _quotas(**changes: Any) -> dict[str, Answer]:
    items = [
        {**item, "status": {"hard": item["spec"]["hard"]}}
        for item in _found(OPTIONS, "ResourceQuota").values()
    ]
    items[0] = {**items[0], **changes}
    return {f"{_GET} resourcequotas --all-namespaces -o json": json.dumps({"items": items})}


def _classes(*more: dict[str, Any]) -> dict[str, Answer]:
    items = [
        *_found(OPTIONS, "PriorityClass").values(),
        {"metadata": {"name": "system-node-critical"}, "value": 2000001000},
    ]
    return {f"{_GET} priorityclasses -o json": json.dumps({"items": [*items, *more]})}


def _namespaces(*accounts: str) -> dict[str, Answer]:
    items = [{"metadata": {"name": name, "labels": {"rackwright.dev/account": name}}} for name in accounts]
    items.append({"metadata": {"name": "default"}})
    return {f"{_GET} namespaces -o json": json.dumps({"items": items})}


def _queues(status: str = "True", *, drop: bool = False, judged_yet: bool = True) -> dict[str, Answer]:
    conditions = (
        [{"type": "Active", "status": status, "message": "flavors are missing"}] if judged_yet else []
    )
    items = [
        {"metadata": {"name": name}, "status": {"conditions": conditions}}
        for name in ("physics", "lattice", "chem-1")
    ]
    return {f"{_GET} clusterqueues.kueue.x-k8s.io -o json": json.dumps({"items": items[drop:]})}


def _compared(answer: str) -> dict[str, Answer]:
    return {f"sh -c {shlex.quote(compare('kubernetes_scheduling', objects(OPTIONS, SITE)))}": answer}


def test_no_check_passes_without_knowing():
    never_passes("kubernetes_scheduling", CHECKS, SITE, HEAD)


@pytest.mark.parametrize(
    ("name", "answers", "status", "evidence"),
    [
        (
            OBJECTS,
            _compared("as declared\n"),
            "PASS",
            f"{len(objects(OPTIONS, SITE))} objects are as declared",
        ),
        (OBJECTS, _compared("v1.Namespace differs\n"), "FAIL", "v1.Namespace differs"),
        (OBJECTS, _compared(""), "UNKNOWN", "the API server did not compare the objects"),
        (QUOTAS, _quotas(), "PASS", "4 quotas"),
        (QUOTAS, _quotas(status={}), "FAIL", "the quota physics/account is not in force"),
        (QUOTAS, _quotas(metadata={"name": "x"}), "FAIL", "the quota physics/account does not exist"),
        (FORMER, _namespaces("physics", "lattice"), "PASS", "3 accounts"),
        (
            FORMER,
            _namespaces("physics", "biology"),
            "WARN",
            "biology: of accounts that are not declared any more; `kubectl delete namespace NAME` deletes what is in it",
        ),
        (CLASSES, _classes(), "PASS", "2 QOS"),
        (
            CLASSES,
            _classes({"metadata": {"name": "mine"}, "value": 5000}),
            "FAIL",
            "the PriorityClass mine is above every QOS: 5000",
        ),
        (
            CLASSES,
            _classes({"metadata": {"name": "mine"}, "value": 5, "globalDefault": True}),
            "FAIL",
            "the PriorityClass mine is the default of all pods",
        ),
    ],
)
def test_check(name, answers, status, evidence):
    found = judged("kubernetes_scheduling", CHECKS, name, SITE, HEAD, FakeHost(answers))
    assert (found.status, found.evidence) == (status, evidence)


@pytest.mark.parametrize(
    ("answers", "status", "evidence"),
    [
        (_queues(), "PASS", "3 queues are active"),
        (_queues("False"), "FAIL", "the queue chem-1 is not active: flavors are missing"),
        (_queues(drop=True), "FAIL", "the queue physics does not exist"),
        (_queues(judged_yet=False), "UNKNOWN", "Kueue has not judged the queue chem-1 yet"),
    ],
)
def test_check_of_queues(answers, status, evidence):
    site = _site(KUEUE)
    found = judged("kubernetes_scheduling", CHECKS, QUEUES, site, site.by_name["head1"], FakeHost(answers))
    assert (found.status, found.evidence.split("; ")[0]) == (status, evidence)
