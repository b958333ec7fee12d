"""The search clusters' reader and what sets them up, against one that fits on a page."""

from __future__ import annotations

import json

import pytest

from rackwright.logs import objects, read_search
from rackwright.logs.answer import Unreadable, answer
from rackwright.logs.objects import Objects, holds
from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.logs.search_texts import objects_settings
from tests.unit.logs.fake_search import LOGIN, Cluster, serve
from tests.unit.logs.journals import T0
from tests.unit.roles.sites import site

STAMP = "2026-11-27T01:{:02d}:{:02d}.{:06d}Z"


@pytest.fixture
def cluster():
    made = Cluster()
    server = serve(made)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def login(tmp_path):
    path = tmp_path / "login.json"
    path.write_text(json.dumps(dict(zip(("user", "password"), LOGIN, strict=True))))
    return str(path)


def document(at, message, node="w1", **fields):
    minutes, seconds = divmod(at, 60)
    stamp = STAMP.format(int(minutes), int(seconds), round(seconds % 1 * 1e6))
    return {"@timestamp": stamp, "node": node, "message": message, **fields}


def ask(cluster, login, **changes):
    store = {"urls": [cluster.url], "ca": None, "login": login, "prefix": "rackwright"}
    request = {
        "store": store,
        "nodes": ["w1", "w2"],
        "since": T0,
        "until": T0 + 1000,
        "lines": 100,
        "seconds": 60,
        **changes,
    }
    return answer(request, read_search.read, read_search.last)


def test_documents_as_lines(cluster, login):
    xid = "NVRM: Xid (PCI:0000:8b:00): 79, pid=1, name=x, GPU has fallen off the bus."
    cluster.documents = [
        document(2.25, xid, kernel=True, priority=2, facility=0),
        document(
            1,
            "sudo",
            "w2",
            uid="1000",
            pid="12",
            unit="ssh.service",
            name="sudo",
            facility="10",
        ),
        document(3, "no node", None),
        {"node": "w1", "message": "no time", "@timestamp": "2026-11-27T01:00:05.000Z"} | {"message": 5},
    ]
    found = ask(cluster, login)
    assert [(one["at"], one["node"], one["unit"], one["pid"]) for one in found["lines"]] == [
        (T0 + 1, "w2", "ssh.service", 12),
        (T0 + 2.25, "w1", None, None),
    ]
    assert found["lines"][1]["fields"] == {"kind": "xid", "device": "0000:8b:00", "code": 79}
    assert found["lines"][0]["trusted"] is False
    assert found["newest"] == {"w1": T0 + 5, "w2": T0 + 1}


def test_a_document_that_a_node_made_up_spoils_no_answer(cluster, login):
    cluster.documents = [document(1, "x", name=["a", "b" * 5000], unit={"no": "text"}, pid=-5, uid=2**70)]
    (line,) = ask(cluster, login)["lines"]
    assert (line["name"], line["unit"], line["pid"], line["uid"]) == ("b" * 1024, None, None, None)


def test_pages_until_all_is_there(cluster, login, monkeypatch):
    monkeypatch.setattr(read_search, "PAGE", 3)
    cluster.documents = [document(at, f"line {at} {n}") for n, at in enumerate([9, 8, 8, 7.5, 7, 5, 4])]
    found = ask(cluster, login)
    assert len(found["lines"]) == 7
    cluster.documents = [document(at, f"line {n}") for n, at in enumerate([9, 8, 8, 8, 8, 1])]
    assert {one["message"] for one in ask(cluster, login)["lines"]} >= {"line 0", "line 1", "line 5"}


def test_what_is_asked_of_a_job():
    job = {
        "nodes": ["w1"],
        "servers": [],
        "units": ["u.service"],
        "cgroup": "x",
        "named": "y",
        "since": 0,
        "until": 1,
    }
    wanted = read_search.Wanted(
        {"nodes": ["w1"], "since": 1, "until": 2, "lines": 3, "job": job, "priority": 3}
    )
    filters = read_search.body_of(wanted, 1000, 2000)["query"]["bool"]["filter"]
    assert filters == [
        {"terms": {"node": ["w1"]}},
        {"range": {"@timestamp": {"gte": 1000, "lte": 2000, "format": "epoch_millis"}}},
        {
            "bool": {
                "should": [{"term": {"kernel": True}}, {"terms": {"unit": ["u.service"]}}],
                "minimum_should_match": 1,
            }
        },
        {"range": {"priority": {"lte": 3}}},
    ]


@pytest.mark.parametrize(
    ("refuse", "said"),
    [
        ((403, {"error": "security_exception"}), "answers 403"),
        ((200, {"_shards": {"failed": 1}, "hits": {"hits": []}}), "for only some of its shards"),
        ((200, {"timed_out": True}), "for only some of its shards"),
        ((200, {"hits": {"hits": ["x"]}}), "not a list of documents"),
        ((200, []), "answers 200"),
    ],
)
def test_what_is_no_answer(cluster, login, refuse, said):
    cluster.refuse = refuse
    with pytest.raises(Unreadable, match=said):
        ask(cluster, login)


def test_the_next_address_is_asked(cluster, login):
    cluster.documents = [document(1, "a")]
    store = {"urls": ["http://127.0.0.1:1", cluster.url], "ca": None, "login": login, "prefix": "rackwright"}
    assert len(ask(cluster, login, store=store)["lines"]) == 1
    with pytest.raises(Unreadable, match="Connection refused"):
        ask(cluster, login, store={**store, "urls": ["http://127.0.0.1:1"]})


def test_a_login_that_is_missing(cluster):
    with pytest.raises(Unreadable, match="cannot read /nowhere"):
        ask(cluster, "/nowhere")


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2026-11-27T01:00:00Z", T0),
        ("2026-11-27T01:00:00.5+00:00", T0 + 0.5),
        ("2026-11-27T01:00:00.123456789Z", T0 + 0.123456789),
        ("2026-11-27", None),
        (5, None),
    ],
)
def test_times(stamp, at):
    assert read_search.seconds(stamp) == (None if at is None else pytest.approx(at, abs=1e-6))


@pytest.mark.parametrize(
    ("found", "wanted", "is_there"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": "1"}, {"a": 1}, True),
        ({"a": "true"}, {"a": True}, True),
        ({"a": 2}, {"a": 1}, False),
        ({}, {"a": 1}, False),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, True),
        ({"a": {}}, {"a": "{}"}, False),
        (None, {}, False),
    ],
)
def test_what_is_as_declared(found, wanted, is_there):
    assert holds(found, wanted) is is_there


@pytest.mark.parametrize("kind", ["elastic", "opensearch"])
def test_objects_are_put_where_they_differ(cluster, login, kind):
    declared = settings(cluster, login, kind)
    made = Objects(declared)
    names = made.differing()
    assert len(names) == 6
    made.put(names)
    assert Objects(declared).differing() == []
    writes = len([method for method, *_ in cluster.requests if method == "PUT"])
    path = next(name for name in names if "policies" in name or "_ilm" in name)
    spoil(cluster.objects[path])
    assert Objects(declared).differing() == [path]
    Objects(declared).put([path])
    assert Objects(declared).differing() == []
    assert len([method for method, *_ in cluster.requests if method == "PUT"]) == writes + 1


def spoil(body):
    policy = body["policy"]
    if "phases" in policy:
        policy["phases"]["delete"]["min_age"] = "1d"
    else:
        policy["states"][0]["transitions"][0]["conditions"]["min_rollover_age"] = "1d"


def settings(cluster, login, kind):
    options = LogsOptions.model_validate(
        {
            "store": {
                "type": kind,
                "urls": ["https://search.example.com:9200"],
                "dashboards_url": "https://kibana.example.com",
                "sends": {"user": "writer", "stored_as": "writer"},
                "manages": {"user": "manager", "stored_as": "manager"},
            }
        }
    )
    found = json.loads(objects_settings(site({"logs": options}), options, options.store))
    saved = {**found["saved"], "url": cluster.url}
    return {**found, "urls": [cluster.url], "login": login, "saved": saved}


def test_saved_objects_are_imported_and_compared(cluster, login):
    declared = settings(cluster, login, "elastic")
    made = Objects(declared)
    made.put(["saved objects"])
    assert ("search", "rackwright-search-complaints") in cluster.saved
    assert "saved objects" not in Objects(declared).differing()
    cluster.saved["search", "rackwright-search-errors"]["attributes"]["columns"] = ["message"]
    assert "saved objects" in Objects(declared).differing()


@pytest.fixture
def program(cluster, login, tmp_path, monkeypatch, capsys):
    path = tmp_path / "objects.json"
    path.write_text(json.dumps(settings(cluster, login, "opensearch")))
    monkeypatch.setattr(objects, "SETTINGS", str(path))

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["logs-objects", *arguments])
        objects.main()
        return capsys.readouterr().out

    return call


def test_the_program(program):
    assert program("--check").startswith("differ: /_plugins/_ism/policies/rackwright-lines, ")
    assert program("--apply") == "as declared\n"
    assert program("--check") == "as declared\n"


def test_how_new_the_lines_are(program, cluster):
    cluster.documents = [document(5, "x", "gpu1")]
    found = json.loads(program("--newest"))
    assert found["newest"] == {"gpu1": T0 + 5, "gpu2": None, "head1": None}


def test_a_cluster_that_refuses(program, cluster):
    cluster.refuse = (503, {"error": "no master"})
    with pytest.raises(SystemExit, match=r"503: .*no master"):
        program("--check")
    cluster.refuse = None
    program("--apply")
    cluster.answer = lambda *_: (404, {}) if _[0] == "GET" and _[1] != "/" else (400, {"error": "bad policy"})
    with pytest.raises(SystemExit, match=r"400: .*bad policy"):
        program("--apply")
