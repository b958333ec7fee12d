"""Queries on the cluster's Prometheus: the program that is sent to its node runs here, against a real server."""

from __future__ import annotations

import ast
import json
import math
import ssl
import sys
import time

import pytest

from rackwright.errors import RackwrightError
from rackwright.model.types import NodeRole
from rackwright.node_programs import sources
from rackwright.prometheus import query as module
from rackwright.prometheus.program import Asker, Failed
from rackwright.prometheus.query import Query, run_queries
from tests.factories import make_cluster, make_node
from tests.unit.dashboards.site import Collects
from tests.unit.prometheus.fake_prometheus import PASSWORD, matrix, prometheus, vector
from tests.unit.prometheus.local_pool import pool  # noqa: F401 - a fixture

pytestmark = pytest.mark.usefixtures("pool")
NODE = {"node": "gpu1"}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A cluster of one or two heads whose Prometheus is at a URL."""
    monkeypatch.setattr(Collects, "password_file", str(tmp_path / "password"))
    (tmp_path / "password").write_text(f"{PASSWORD}\n")

    def of(url, heads=1, primary_url=None):
        urls = [url] * (heads - 1) + [primary_url or url]
        nodes = [
            make_node(
                f"head{number}",
                10 + number,
                NodeRole.HEAD,
                primary=number == heads,
                options={"prometheus": Collects(url=own)},
            )
            for number, own in enumerate(urls, 1)
        ]
        return make_cluster(*nodes)

    return of


def ask(cluster, answers, *queries, **more):
    with prometheus(answers) as fake:
        return run_queries(cluster(fake.url), queries, **more), fake


def only(data):
    return lambda path, given: data


def test_one_value_of_each_series(cluster):
    (result,), fake = ask(cluster, only(vector((NODE, 1.5), ({}, 2))), Query("up"))
    assert result.error is None
    assert [(one.labels, one.last) for one in result.series] == [(NODE, 1.5), ({}, 2.0)]
    ((path, given),) = fake.asked
    assert path == "/api/v1/query"
    assert given["query"] == "up"
    assert abs(float(given["time"]) - time.time()) < 30, "now, by the clock of the node"


def test_a_span_of_time(cluster):
    points = [(1_800_000_000, "1"), (1_800_000_030, "NaN"), (1_800_000_060, "+Inf")]
    (result,), fake = ask(
        cluster,
        only(matrix((NODE, points))),
        Query("up", over_seconds=3600, step_seconds=30, end=1_800_000_060),
    )
    values = [value for _, value in result.series[0].points]
    assert values[0] == 1
    assert math.isnan(values[1])
    assert values[2] == math.inf
    ((path, given),) = fake.asked
    assert path == "/api/v1/query_range"
    assert (given["start"], given["end"], given["step"]) == ("1799996460", "1800000060", "30")


def test_a_scalar_is_a_series_without_labels(cluster):
    (result,), _ = ask(cluster, only({"resultType": "scalar", "result": [1.0, "7"]}), Query("scalar(x)"))
    assert [(one.labels, one.last) for one in result.series] == [({}, 7.0)]


def test_results_are_in_the_order_of_queries(cluster, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 3)
    answers = lambda path, given: vector(({}, float(given["query"])))
    results, fake = ask(cluster, answers, *(Query(str(number)) for number in range(8)))
    assert [result.series[0].last for result in results] == list(range(8))
    assert len(fake.asked) == 8


def test_no_query_needs_no_connection(cluster, pool):  # noqa: F811
    assert run_queries(cluster("http://127.0.0.1:1"), ()) == ()
    assert pool.asked == []


def test_an_error_is_one_query_s_own(cluster):
    def answers(path, given):
        if given["query"] == "bad(":
            return json.dumps(
                {"status": "error", "errorType": "bad_data", "error": "parse error: \x1b[31m"}
            ).encode()
        return vector((NODE, 1))

    (bad, good), _ = ask(cluster, answers, Query("bad("), Query("up"))
    assert bad.error == "Prometheus answers 200: parse error: \\x1b[31m"
    assert good.error is None


def test_a_wrong_password(cluster, tmp_path):
    with prometheus(only(vector()), password="another") as fake:
        (result,) = run_queries(cluster(fake.url), [Query("up")])
    assert result.error == "Prometheus answers 401: no JSON of its API"
    assert fake.asked == []


def test_nothing_listens(cluster):
    (result,) = run_queries(cluster("http://127.0.0.1:1"), [Query("up")])
    assert result.error == "Prometheus does not answer: [Errno 111] Connection refused"


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"<html>", "Prometheus answers 200: no JSON of its API"),
        (b"[1]", "Prometheus answers 200: no JSON of its API"),
        (b"[" * 100_000, "Prometheus answers 200: no JSON of its API"),
        (None, "Prometheus' answer does not have the documented format"),
        ({"resultType": "vector", "result": 7}, "Prometheus' answer does not have the documented format"),
        (
            {"resultType": "vector", "result": [{"metric": {}}]},
            "Prometheus' answer does not have the documented format",
        ),
        ({"resultType": "string", "result": [1, "x"]}, "the answer is not a series of numbers: string"),
    ],
    ids=str,
)
def test_garbage(tmp_path, data, error):
    with prometheus(only(data)) as fake:
        asker = asker_of(tmp_path, fake.url)
        with pytest.raises(Failed) as failed:
            asker.series({"query": "up"})
    assert str(failed.value) == error


def test_an_answer_that_is_too_large(cluster, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_BYTES", 1000)
    (result,), _ = ask(cluster, only(vector(({"node": "x" * 2000}, 1))), Query("up"))
    assert result.error == "the answer is larger than 1000 bytes"


def test_answers_that_are_too_large_together(cluster, monkeypatch):
    monkeypatch.setattr(module, "BATCH_BYTES", 3000)
    results, _ = ask(cluster, only(vector(({"node": "x" * 2000}, 1))), Query("a"), Query("b"))
    assert sorted(str(result.error) for result in results) == [
        "None",
        "the answers together are larger than 3000 bytes",
    ]


def test_an_answer_that_comes_slowly(cluster, monkeypatch):
    monkeypatch.setattr(module, "QUERY_SECONDS", 0.2)
    with prometheus(only(vector((NODE, 1)))) as fake:
        fake.pause = 0.1
        (result,) = run_queries(cluster(fake.url), [Query("up")])
    assert result.error == "no complete answer within 0.2 s"


def test_the_time_of_all_queries(cluster, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 1)

    def slow(path, given):
        time.sleep(0.3)
        return vector((NODE, 1))

    results, fake = ask(cluster, slow, Query("a"), Query("b"), Query("c"), limit_seconds=0.2)
    assert [result.error for result in results[1:]] == ["not queried: the time was up"] * 2
    assert len(fake.asked) <= 1


def test_the_second_of_a_pair_answers(cluster, pool):  # noqa: F811
    pool.gone = ("head2",)
    with prometheus(only(vector((NODE, 1)))) as fake:
        (result,) = run_queries(cluster(fake.url, heads=2), [Query("up")])
    assert pool.asked == ["head2", "head1"], "the primary head first"
    assert result.series


def test_the_second_of_a_pair_answers_where_the_first_runs_no_prometheus(cluster, pool):  # noqa: F811
    with prometheus(only(vector((NODE, 1)))) as fake:
        found = cluster(fake.url, heads=2, primary_url="http://127.0.0.1:1")
        (result,) = run_queries(found, [Query("up")])
    assert pool.asked == ["head2", "head1"]
    assert result.series


def test_an_error_of_the_first_is_an_answer(cluster, pool):  # noqa: F811
    with prometheus(only(b"<html>")) as fake:
        (result,) = run_queries(cluster(fake.url, heads=2), [Query("up")])
    assert pool.asked == ["head2"]
    assert result.error == "Prometheus answers 200: no JSON of its API"


def test_neither_of_a_pair_answers(cluster, pool):  # noqa: F811
    pool.gone = ("head1",)
    (result,) = run_queries(cluster("http://127.0.0.1:1", heads=2), [Query("up")])
    assert result.error == "Prometheus does not answer: [Errno 111] Connection refused"


def test_no_node_answers(cluster, pool):  # noqa: F811
    pool.gone = ("head1",)
    with pytest.raises(RackwrightError) as refused:
        run_queries(cluster("http://127.0.0.1:1"), [Query("up")])
    assert refused.value.message == "Cannot query Prometheus: Cannot connect to head1: it is off."


def test_a_cluster_without_prometheus():
    with pytest.raises(RackwrightError) as refused:
        run_queries(make_cluster(), [Query("up")])
    assert refused.value.message == "Cluster test declares no Prometheus."
    assert refused.value.hint == "add the role `prometheus: {}` and apply"


def test_no_password_file(cluster, tmp_path):
    (tmp_path / "password").unlink()
    with pytest.raises(
        RackwrightError, match=r"head1: cannot query Prometheus: FileNotFoundError: .*password"
    ) as refused:
        run_queries(cluster("http://127.0.0.1:1"), [Query("up")])
    assert refused.value.hint == "check whether it is installed and running: rackwright verify"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("sudo: nothing", "head1: the answers of Prometheus are invalid: it is not valid JSON: .*"),
        ('{"n": "x"}', "head1: the answers of Prometheus are invalid: n: .*"),
        ('{"n": 0, "series": [[{"a": 1}, []]]}', "head1: the answers of Prometheus are invalid: series.*"),
        ('{"n": 0, "more": 1}', "head1: the answers of Prometheus are invalid: more: .*"),
    ],
)
def test_a_node_that_answers_anything(cluster, pool, line, error):  # noqa: F811
    pool.answer = line
    with pytest.raises(RackwrightError, match=error):
        run_queries(cluster("http://127.0.0.1:1"), [Query("up")])


def test_answers_to_what_nobody_asked(cluster, pool):  # noqa: F811
    pool.answer = '{"n": 7, "error": "x"}\n{"n": -1, "error": "x"}'
    (result,) = run_queries(cluster("http://127.0.0.1:1"), [Query("up")])
    assert result.error == "no answer came"


def test_labels_are_printable(cluster):
    (result,), _ = ask(cluster, only(vector(({"node": "a\x1b[2J\u202eb"}, 1))), Query("up"))
    assert result.series[0].labels == {"node": "a\\x1b[2J\\u202eb"}


def test_no_password_leaves_the_node(cluster, pool, monkeypatch):  # noqa: F811
    sent = []
    run = pool.run
    monkeypatch.setattr(
        pool,
        "run",
        lambda self, node, command, **more: (
            sent.append((command, more["stdin"])) or run(self, node, command, **more)
        ),
    )
    (result,), _ = ask(cluster, only(vector((NODE, 1))), Query("up"))
    ((command, given),) = sent
    assert PASSWORD not in command
    assert PASSWORD.encode() not in given
    assert PASSWORD not in str(result)


def asker_of(folder, url, **more):
    """The program's own, in this process."""
    (folder / "password").write_text(PASSWORD)
    limits = {"query_seconds": 5, "seconds": 5, "answer_bytes": 1 << 20, "bytes": 1 << 20}
    given = {"url": url, "user": "prometheus", "password_file": str(folder / "password"), "ca_file": None}
    return Asker({**given, "limits": limits, **more})


def test_it_speaks_tls_with_the_site_s_ca(tmp_path):
    with pytest.raises(FileNotFoundError):
        asker_of(tmp_path, "https://h:1", ca_file=str(tmp_path / "missing"))
    tls = asker_of(tmp_path, "https://h:1").tls
    assert tls.check_hostname
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert asker_of(tmp_path, "http://h:1").tls is None


def test_the_program_runs_on_python_3_9_with_its_library_alone():
    for text in sources(module.PROGRAM).values():
        tree = ast.parse(text, feature_version=(3, 9))
        imports = [one for one in ast.walk(tree) if isinstance(one, (ast.Import, ast.ImportFrom))]
        names = {alias.name for one in imports if isinstance(one, ast.Import) for alias in one.names}
        names |= {str(one.module) for one in imports if isinstance(one, ast.ImportFrom)}
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
