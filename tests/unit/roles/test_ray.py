"""The ray role: its options, what it starts, and its checks, each seen to object."""

from __future__ import annotations

import ast
import hashlib
import json
import shlex

import pytest

from rackwright.claims.python_environments import DISTRIBUTIONS
from rackwright.facts.python_environments import PythonEnvironments
from rackwright.model.python_environment import locked
from rackwright.model.types import NodeRole, Workload
from rackwright.roles.ray import connections, places, reading, sizes, texts
from rackwright.roles.ray.options import RayOptions
from rackwright.roles.ray.verify import CHECKS
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.status import Status
from tests.factories import make_cluster, make_node
from tests.unit.roles.container_site import never_passes, sentences
from tests.unit.roles.fake_facts import asked, file, unit
from tests.unit.roles.fake_host import FakeHost, claimed, commands, content, errors_in, judged, planned
from tests.unit.roles.sites import head, site, worker

OPTIONS = RayOptions(object_store_mib=512, wheels="http://10.9.0.1:8080/")
SITE = site({"site_ca": SiteCaOptions(), "ray": OPTIONS})
LOCK = OPTIONS.lock_text(SITE)
DIGEST = hashlib.sha256(LOCK.encode()).hexdigest()[:16]
ENVIRONMENT = f"{DIGEST}.1795842000"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ports": {"gcs": 6380}}, "gcs and redis have the same port 6380."),
        ({"ports": {"client": 20001}}, "The port of client, 20001, is in the range of workers."),
        ({"ports": {"first_worker": 30000}}, "`last_worker` is below `first_worker`."),
        ({"resources": {"CPU": 3}}, "CPU is one of Ray's own resources."),
        (
            {"wheels": "http://a/", "index_url": "http://b/"},
            "Wheels come from `wheels` or from `index_url`, not from both.",
        ),
        ({"prove": ["data", "data"]}, "A library is named twice in `prove`."),
    ],
)
def test_options_that_are_refused(given, message):
    (error,) = errors_in(RayOptions, given)
    assert message in error


def test_it_needs_certificates_and_a_head_that_exists():
    bare = site({"ray": RayOptions(head="head9")})
    found = [sentence for _, sentence, _ in sentences(bare, "ray")]
    assert found == [
        "head9 is not a node of this cluster.",
        "gpu1 has no certificate, which Ray's processes identify themselves with.",
    ]
    assert sentences(SITE, "ray") == []


def test_workers_of_another_workload_run_no_ray():
    options = {"site_ca": SiteCaOptions(), "ray": OPTIONS}
    nodes = (
        make_node("head1", 10, NodeRole.HEAD, options=options),
        make_node("w1", 11, workload=Workload.RAY, options=options),
        make_node("w2", 12, workload=Workload.SLURM, options=options),
        make_node("login1", 13, NodeRole.LOGIN, options=options),
    )
    cluster = make_cluster(*nodes)
    assert [node.name for node in cluster.running("ray")] == ["head1", "w1"]


def test_a_worker_is_started_with_what_its_sku_has():
    gpu = worker(SITE)
    command = texts.start_command(SITE, gpu, OPTIONS)
    assert "--address=10.9.0.10:6379" in command
    assert f"--num-cpus={gpu.sku.cpus}" in command
    assert f"--num-gpus={gpu.sku.gpus.count}" in command
    assert f"--object-store-memory={512 * 2**20}" in command
    assert "--node-name=gpu1" in command
    (given,) = (word for word in command if word.startswith("--resources="))
    assert json.loads(given.partition("=")[2]) == {f"sku:{gpu.sku.name}": 1.0}
    assert sizes.expected(gpu, OPTIONS)["memory"] == (gpu.sku.memory_mib - 512 - 2048) * 2**20


def test_the_head_runs_no_tasks_and_shows_its_dashboard_to_itself_alone():
    command = texts.start_command(SITE, head(SITE), OPTIONS)
    assert {"--head", "--num-cpus=0", "--dashboard-host=127.0.0.1"} <= set(command)
    assert not any("redis" in word for word in command)
    private = {one.ports[0] for one in OPTIONS.listeners(head(SITE)) if not one.purposes}
    assert {8265, 6380, 6385} <= private
    assert 6379 not in private


def test_reserved_cores_are_kept_from_tasks():
    options = OPTIONS.model_copy(update={"core_spec_count": 2})
    gpu = worker(SITE)
    assert sizes.cpus(gpu, options) == gpu.sku.cpus - 2 * gpu.sku.threads_per_core
    greedy = site(
        {"site_ca": SiteCaOptions(), "ray": RayOptions(core_spec_count=100000, object_store_mib=10**9)}
    )
    assert [path for path, _, _ in sentences(greedy, "ray")][:1] == ["object_store_mib"]
    assert "core_spec_count" in [path for path, _, _ in sentences(greedy, "ray")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, ["The lock own.txt cannot be read: No such file or directory."]),
        (b"\xff\xfe", ["The lock own.txt cannot be read: it is not UTF-8."]),
        (b"# nothing\n", ["The lock own.txt has no ray."]),
        (
            b"ray==2.60.0\ntorch>=2 \\\n    --hash=sha256:00\n",
            [
                "own.txt:1: `ray==2.60.0` has no version with hashes.",
                "own.txt:2: `torch>=2 \\` has no version with hashes.",
                "The lock own.txt has no ray.",
            ],
        ),
        (b"ray[default]==2.60.0 ; python_version > '3' \\\n    --hash=sha256:00\n", []),
    ],
)
def test_a_lock_of_the_site_is_read_before_any_node_is(tmp_path, text, found):
    if text is not None:
        (tmp_path / "own.txt").write_bytes(text)
    options = {"site_ca": SiteCaOptions(), "ray": RayOptions(lock="own.txt")}
    declared = site(options).model_copy(update={"path": tmp_path / "cluster.yaml"})
    assert [sentence for _, sentence, _ in options["ray"].lock_mistakes(declared, "ray")] == found
    refused = [sentence for _, sentence, _ in options["ray"].problems(declared)]
    assert refused[: len(found)] == found


def test_pip_takes_wheels_from_where_they_are_declared():
    assert OPTIONS.pip_source(SITE) == (
        "--no-index",
        "--find-links",
        "http://10.9.0.1:8080/",
        "--trusted-host",
        "10.9.0.1:8080",
    )
    assert RayOptions().pip_source(SITE) == ()
    assert RayOptions(index_url="https://pypi.site/simple").pip_source(SITE) == (
        "--index-url",
        "https://pypi.site/simple",
    )


def test_no_secret_is_in_what_everyone_may_read():
    for node in (head(SITE), worker(SITE)):
        plan = planned(SITE, node)
        for path in {**texts.files(SITE, node, OPTIONS), **texts.programs()}:
            assert "(secret" not in content(plan, path), path
    install = commands(planned(SITE, worker(SITE)), "Install the locked Python environment")
    assert "--require-hashes" in install[0]
    assert "--only-binary :all:" in install[0]


def test_the_programs_are_python_and_shell():
    for path, text in texts.programs().items():
        if path.endswith(".py"):
            ast.parse(text)
        else:
            assert text.startswith("#!/bin/sh\n")


def test_the_lock_names_ray_once_and_a_digest_for_each_package():
    assert locked(LOCK)["ray"] == {"2.60.0"}
    names = locked(LOCK)
    assert {"ray", "pyarrow", "pandas", "numpy", "grpcio", "fastapi"} <= names.keys()
    assert LOCK.count("--hash=sha256:") > len(names)


def _line(template, *args):
    return template % tuple(shlex.quote(arg) for arg in args)


def _prove(*words):
    return _line(
        " ".join(["timeout %s %s", "prove.py", *(["%s"] * len(words))]), "280", places.WITH_RAY, *words
    )


def _distributions(**changed):
    found = {name: min(versions) for name, versions in locked(LOCK).items()} | {"pip": "25.1"}
    return json.dumps(
        {"distributions": found | changed.pop("distributions", {}), "wrong": [], "count": 0} | changed
    )


TLS = tuple(
    _line(
        "timeout 50 python3 -IS -c %s %s %s %s %s %s",
        connections.PLAIN,
        "10.9.0.10",
        port,
        "/etc/rackwright-ca.crt",
        "/etc/ray/tls.crt",
        "/etc/ray/tls.key",
    )
    for port in ("6381", "6379")
)
ENVIRONMENTS = asked(PythonEnvironments().command(places.ENVIRONMENTS))
RECORDS = _line("timeout 55 %s -I -B -c %s", places.PYTHON, DISTRIBUTIONS)
SECRETS = _line(
    "sh -c %s sh %s", reading.IN_COMMAND_LINES, f"{places.TOKEN} {places.REDIS_PASSWORD} {places.GCS_FLAGS}"
)
ANONYMOUS = _line("timeout 50 %s -c %s", places.WITH_RAY, connections.ANONYMOUS)
URL = "http://127.0.0.1:8265/nodes?view=summary"
DASHBOARD = _line(connections._HTTP, URL)
WITH_TOKEN = _line("sh -c %s sh %s %s", connections._WITH_TOKEN, places.TOKEN, URL)
REDIS = _line("sh -c %s sh %s %s", connections.REDIS, "6380", "")
WITH_PASSWORD = _line("sh -c %s sh %s %s", connections.REDIS, "6380", places.REDIS_PASSWORD)
RESOURCES = {node.name: sizes.expected(node, OPTIONS) | {f"node:{node.name}": 1.0} for node in SITE.nodes}


def answers():
    """Of a head in order; its jobs answer for the whole cluster."""
    node = head(SITE)
    found = unit(places.HEAD_UNIT) | unit(places.REDIS_UNIT)
    for path, text in texts.files(SITE, node, OPTIONS).items():
        found |= file(path, text)
    for path, text in texts.programs().items():
        found |= file(path, text, mode="755")
    for path in texts.secret_files(node, OPTIONS, lambda name: name):
        found |= file(path, "x", mode="640", group="ray")
    return found | {
        ENVIRONMENTS: f"current {ENVIRONMENT}\nenvironment {ENVIRONMENT}\nwhole\n",
        RECORDS: _distributions(),
        SECRETS: "clean\n",
        **dict.fromkeys(TLS, "tls TLSv1.3\n"),
        ANONYMOUS: "refuses\n",
        DASHBOARD: "401",
        WITH_TOKEN: "200",
        REDIS: "NOAUTH Authentication required.\n",
        WITH_PASSWORD: "PONG\n",
        _prove("resources"): "progress\n" + json.dumps(RESOURCES),
        _prove("tasks", "head1", "gpu1", "gpu2"): json.dumps({name: name for name in RESOURCES}),
        _prove("actor", "gpu1"): json.dumps({"before": 10, "after": 11}),
        _prove("spill", "gpu1", "576"): json.dumps({"written_mib": 592, "wrong": 0}),
        _prove("data"): json.dumps({"sum": 999000, "expected": 999000}),
        _prove("tune"): json.dumps({"best": 2, "expected": 2}),
        _prove("train"): json.dumps({"ranks": [[0, 1]], "expected": [[0, 1]]}),
        _prove("serve"): json.dumps({"answer": 42, "expected": 42}),
    }


def result(name, cluster=SITE, **changed):
    return judged(
        "ray", CHECKS, name, cluster, head(cluster), FakeHost(answers() | changed.pop("reply", changed))
    )


def test_a_head_as_declared_passes():
    names = claimed("ray", CHECKS, head(SITE))
    assert len(names) == len(CHECKS)
    for name in names:
        found = result(name)
        assert found.status == "PASS", found


FAULTS = [
    ("Ray is running", unit(places.HEAD_UNIT, active="failed"), "FAIL"),
    ("Redis is running", unit(places.REDIS_UNIT, active="inactive"), "FAIL"),
    ("Ray's files are as declared", file(places.PROVE, "exit()", mode="755"), "FAIL"),
    ("only root and Ray read its secrets", file(places.TOKEN, "x", mode="644", group="ray"), "FAIL"),
    ("Ray's environment is the installed one", {ENVIRONMENTS: f"current {ENVIRONMENT}\nchanged\n"}, "FAIL"),
    ("Ray's environment is the installed one", {ENVIRONMENTS: "current 0123456789abcdef.1\nwhole\n"}, "FAIL"),
    ("Ray's environment is the installed one", {ENVIRONMENTS: "none\n"}, "FAIL"),
    (
        "Ray's environment is as locked",
        {RECORDS: _distributions(wrong=["ray/_raylet.so is not the wheel's"], count=1)},
        "FAIL",
    ),
    ("Ray's environment is as locked", {RECORDS: _distributions(distributions={"ray": "2.59.0"})}, "FAIL"),
    ("Ray's environment is as locked", {RECORDS: _distributions(distributions={"leftpad": "1"})}, "FAIL"),
    ("Ray's environment is as locked", {RECORDS: "[]"}, "UNKNOWN"),
    ("no command line shows a secret of Ray", {SECRETS: (1, "raylet\n", "")}, "FAIL"),
    ("no command line shows a secret of Ray", {SECRETS: (2, "", "/etc/ray/token cannot be read")}, "UNKNOWN"),
    ("Ray refuses connections without TLS", {TLS[0]: "plain\n"}, "FAIL"),
    ("Ray refuses connections without TLS", {TLS[1]: "untrusted CERTIFICATE_VERIFY_FAILED\n"}, "FAIL"),
    ("Ray refuses connections without TLS", {TLS[1]: "unreachable refused\n"}, "FAIL"),
    ("Ray refuses requests without its token", {ANONYMOUS: "answers\n"}, "FAIL"),
    ("Ray refuses requests without its token", {ANONYMOUS: (1, "", "timed out")}, "UNKNOWN"),
    ("the dashboard requires the token", {DASHBOARD: "200"}, "FAIL"),
    ("the dashboard requires the token", {WITH_TOKEN: "500"}, "FAIL"),
    ("the dashboard requires the token", {DASHBOARD: (7, "", "refused")}, "FAIL"),
    ("the dashboard requires the token", {DASHBOARD: "500"}, "UNKNOWN"),
    ("Redis requires its password", {REDIS: "PONG\n"}, "FAIL"),
    ("Redis requires its password", {WITH_PASSWORD: "WRONGPASS\n"}, "FAIL"),
    ("Redis requires its password", {REDIS: "Could not connect\n"}, "UNKNOWN"),
    (
        "every node has its declared resources in Ray",
        {_prove("resources"): json.dumps(RESOURCES | {"gpu1": RESOURCES["gpu1"] | {"GPU": 7.0}})},
        "FAIL",
    ),
    (
        "every node has its declared resources in Ray",
        {_prove("resources"): json.dumps({"head1": RESOURCES["head1"]})},
        "FAIL",
    ),
    (
        "every node has its declared resources in Ray",
        {_prove("resources"): json.dumps(RESOURCES | {"stranger": {}})},
        "FAIL",
    ),
    (
        "every node of Ray runs a task",
        {_prove("tasks", "head1", "gpu1", "gpu2"): json.dumps({"head1": "head1", "gpu1": "error: X"})},
        "FAIL",
    ),
    (
        "Ray restarts an actor whose process was killed",
        {_prove("actor", "gpu1"): json.dumps({"before": 10, "after": 10})},
        "FAIL",
    ),
    (
        "Ray restarts an actor whose process was killed",
        {_prove("actor", "gpu1"): (1, "", "ActorDiedError: gone")},
        "FAIL",
    ),
    (
        "Ray spills objects and reads them back",
        {_prove("spill", "gpu1", "576"): json.dumps({"written_mib": 592, "wrong": 3})},
        "FAIL",
    ),
    ("Ray Data reads, maps and sums", {_prove("data"): json.dumps({"sum": 1, "expected": 999000})}, "FAIL"),
    ("Ray Tune finds the best trial", {_prove("tune"): (124, "", "")}, "UNKNOWN"),
    ("Ray Train runs a worker", {_prove("train"): (1, "", "ModuleNotFoundError: torch")}, "FAIL"),
    ("Ray Serve answers", {_prove("serve"): "42"}, "UNKNOWN"),
]


@pytest.mark.parametrize(("name", "changed", "status"), FAULTS)
def test_a_fault_is_found(name, changed, status):
    assert result(name, reply=changed).status == status


def test_every_check_has_a_fault():
    assert {name for name, _, status in FAULTS if status == "FAIL"} >= {check.name for check in CHECKS} - {
        "Ray Tune finds the best trial",
        "Ray Serve answers",
    }


def test_libraries_that_are_left_out_and_large_stores_are_not_judged():
    options = RayOptions(prove=("data",), object_store_mib=9000)
    other = site({"site_ca": SiteCaOptions(), "ray": options})
    assert result("Ray Train runs a worker", other).status == Status.OUT_OF_SCOPE
    assert result("Ray spills objects and reads them back", other).status == Status.OUT_OF_SCOPE


@pytest.mark.parametrize("node", [head(SITE), worker(SITE)], ids=lambda node: node.name)
def test_without_tools_nothing_passes(node):
    never_passes("ray", CHECKS, SITE, node)
