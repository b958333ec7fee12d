"""The server of jobs' metrics, with an `unmunge` of the tests' own and a Prometheus on loopback."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rackwright.job_metrics import client, identity, server

# As munge prints it (0.5.16, Debian 13); the credential of these tests carries what unmunge is to say.
UNMUNGE = """\
#!/bin/sh
read -r credential
case $credential in
*UID0*) uid='root (0)';;
*NOONE*) uid='4294 (4294000000)';;
*) uid='me (%d)';;
esac
case $credential in
*REPLAYED*) printf 'STATUS:          Replayed credential (17)\\nUID:             %%s\\n\\n' "$uid"; exit 17;;
*OTHERJOB*) body='rackwright job-metrics 7';;
*PLAIN*) body='STATUS: x';;
*) body='rackwright job-metrics 42';;
esac
printf 'STATUS:          Success (0)\\nENCODE_HOST:     head1 (10.0.0.1)\\nUID:             %%s\\nLENGTH:          1\\n\\n%%s' "$uid" "$body"
"""
MINE = "MUNGE:AAAAAAAAAAAAAAAAAAAAAAAA:"


def credential(word):
    return f"MUNGE:AAAAAAAAAAAAAAAAAAAA{word}:"


@pytest.fixture(autouse=True)
def unmunge(tmp_path, monkeypatch):
    program = tmp_path / "unmunge"
    program.write_text(UNMUNGE % os.getuid())
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return program


class Asked(list):
    """Expressions that a Prometheus was asked, and what it answers to those that contain a text."""

    def __init__(self):
        self.replies = {}
        self.broken = False


@pytest.fixture
def prometheus():
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append(form["query"][0])
            reply = next((value for text, value in asked.replies.items() if text in form["query"][0]), [])
            body = (
                b"<html>"
                if asked.broken
                else json.dumps(
                    {
                        "status": "success",
                        "data": {
                            "resultType": "matrix" if "range" in self.path else "vector",
                            "result": reply,
                        },
                    }
                ).encode()
            )
            allowed = self.headers["Authorization"] == "Basic cHJvbWV0aGV1czpzZWNyZXQ="
            self.send_response(200 if allowed else 401)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        asked.url = f"http://127.0.0.1:{running.server_address[1]}"
        yield asked
        running.shutdown()


@pytest.fixture
def url(prometheus, tmp_path):
    (tmp_path / "password").write_text("secret\n")
    config = {
        "prometheus": prometheus.url,
        "user": "prometheus",
        "password_file": str(tmp_path / "password"),
        "ca_file": None,
        "operators": ["nobody"],
        "days": 31,
    }
    running = server.Server(("127.0.0.1", 0), server.handler(config))
    threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{running.server_address[1]}"
    running.shutdown()
    running.server_close()


def ask(url, path, given=MINE):
    request = urllib.request.Request(url + path, headers={server.HEADER: given} if given else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_user_sees_the_figures_of_their_own_job(url, prometheus):
    prometheus.replies = {
        "count_over_time": [{"metric": {}, "value": [1, "9"]}],
        "DCGM_FI_DEV_GPU_UTIL": [
            {"metric": {"node": "gpu1", "gpu": "0"}, "values": [[1, "97"], [31, "NaN"]]}
        ],
    }
    status, found = ask(url, "/v1/jobs/42?since=120")
    assert status == 200
    (one,) = found["series"]
    assert (one["name"], one["labels"]) == ("gpu utilization", {"node": "gpu1", "gpu": "0"})
    assert one["points"] == [[1.0, 97.0]]


def test_the_job_of_another_user_returns_nothing(url, prometheus):
    """Prometheus finds no series in which the job is this user's, and is asked nothing else."""
    status, found = ask(url, "/v1/jobs/42")
    assert (status, found["series"]) == (404, [])
    assert len(prometheus) == 1
    assert 'user="' in prometheus[0]


def test_an_operator_sees_every_job(url, prometheus, monkeypatch):
    monkeypatch.setattr(server, "name_of", lambda *_: "nobody")
    ask(url, "/v1/jobs/42")
    assert prometheus == ['count_over_time(slurm_job_info{job="42"}[31d])']


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "no credential of MUNGE"),
        ("MUNGE:short:", "no credential of MUNGE"),
        ("MUNGE:AAAAAAAAAAAAAAAAAAAAAA$(id):", "no credential of MUNGE"),
        (credential("REPLAYED"), "MUNGE refuses the credential"),
        (credential("OTHERJOB"), "the credential is for something else"),
        (credential("PLAIN"), "the credential is for something else"),
        (credential("NOONE"), "user 4294000000 has no name here"),
    ],
)
def test_who_cannot_say_who_asks_is_refused(url, prometheus, given, reason):
    assert ask(url, "/v1/jobs/42", given) == (401, {"error": reason})
    assert prometheus == []


def test_a_missing_unmunge_refuses(url, unmunge, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert ask(url, "/v1/jobs/42") == (401, {"error": "MUNGE does not answer here"})


@pytest.mark.parametrize("path", ["/", "/v1/jobs/", "/v1/jobs/4x", "/v1/jobs/../../etc", "/v1/jobs/42/7"])
def test_what_is_no_job_is_not_found(url, prometheus, path):
    assert ask(url, path)[0] == 404
    assert prometheus == []


def test_a_since_that_is_no_number_is_refused(url):
    assert ask(url, "/v1/jobs/42?since=often")[0] == 400


def test_no_answer_of_prometheus_is_no_empty_answer(url, prometheus):
    prometheus.broken = True
    assert ask(url, "/v1/jobs/42") == (502, {"error": "Prometheus does not answer"})


def test_a_wrong_password_is_no_empty_answer(url, tmp_path):
    (tmp_path / "password").write_text("other")
    assert ask(url, "/v1/jobs/42")[0] == 502


def test_a_name_of_a_directory_is_asked_for(url, prometheus, monkeypatch):
    monkeypatch.setattr(server, "name_of", lambda *_: "EX\\ada")
    assert ask(url, "/v1/jobs/42")[1]["error"] == "no job 42 of EX\\ada in the last 31 days"
    assert prometheus == ['count_over_time(slurm_job_info{job="42",user="EX\\\\ada"}[31d])']


def test_a_name_that_cannot_be_asked_for_is_refused_as_that(url, prometheus, monkeypatch):
    monkeypatch.setattr(server, "name_of", lambda *_: "ada\n")
    assert ask(url, "/v1/jobs/42") == (
        403,
        {"error": "your user name has more than 200 characters, or some that cannot be printed"},
    )
    assert prometheus == []


class Hanging:
    """In place of `name_of`: a munged that does not answer until it is let go."""

    def __init__(self, monkeypatch):
        self.asked, self.lets_go = threading.Semaphore(0), threading.Event()
        monkeypatch.setattr(server, "name_of", self)

    def __call__(self, credential, job):
        self.asked.release()
        self.lets_go.wait(60)
        return "ada"


def test_unmunge_runs_a_few_times_at_once_and_the_next_is_sent_away(url, monkeypatch):
    munge = Hanging(monkeypatch)
    flood = [
        threading.Thread(target=ask, args=(url, "/v1/jobs/42"), daemon=True) for _ in range(server.AT_ONCE)
    ]
    for one in flood:
        one.start()
        assert munge.asked.acquire(timeout=20)
    assert ask(url, "/v1/jobs/42") == (503, {"error": "too many questions at once; ask again"})
    assert not munge.asked.acquire(blocking=False)
    munge.lets_go.set()
    for one in flood:
        one.join(20)
    assert ask(url, "/v1/jobs/42")[0] == 404


def test_a_text_in_the_credential_cannot_be_taken_for_munges_own():
    assert identity.payload("42") == "rackwright job-metrics 42"


SERIES = {
    "series": [
        {
            "name": "gpu power",
            "unit": "W",
            "labels": {"node": "gpu1", "gpu": "3"},
            "points": [[0, 100.0], [30, 300.0], [60, 500.0]],
        },
        {"name": "gpu power", "unit": "W", "labels": {"node": "gpu2", "gpu": "0"}, "points": []},
    ]
}


def test_the_client_prints_a_line_for_each_series():
    head, line = client.lines(SERIES)
    assert head.split() == ["least", "mean", "most"]
    assert line.split() == ["gpu", "power", "gpu1", "gpu", "3", "100.0", "300.0", "500.0", "W", "▂▅█"]


def test_the_client_says_where_there_are_no_figures():
    assert client.lines({"series": []}) == ["no figures in this time"]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("5m", 300), ("2h", 7200), ("3d", 259200)])
def test_spans(text, seconds):
    assert client.seconds_of(text) == seconds


@pytest.fixture
def settings(url, tmp_path):
    """The client's, on a node with `munge`."""
    program = tmp_path / "munge"
    program.write_text(f"#!/bin/sh\n[ \"$2\" = 'rackwright job-metrics 42' ] && echo '{MINE}'\n")
    program.chmod(0o755)
    settings = tmp_path / "client.json"
    settings.write_text(json.dumps({"url": url, "ca_file": None}))
    return settings


def test_the_client_asks_as_its_user(settings, prometheus, capsys):
    with pytest.raises(SystemExit) as ended:
        client.main(["42"], str(settings))
    assert str(ended.value).startswith("job-metrics: no job 42 of ")
    prometheus.replies = {
        "count_over_time": [{"metric": {}, "value": [1, "9"]}],
        "POWER_USAGE": [{"metric": {"node": "gpu1", "gpu": "3"}, "values": [[1, "700"]]}],
    }
    client.main(["42"], str(settings))
    assert "gpu1 gpu 3" in capsys.readouterr().out


def test_the_client_asks_past_the_site_s_proxy(settings, monkeypatch):
    """NO_PROXY names the network, which Python does not understand."""
    monkeypatch.setattr(urllib.request, "_opener", None)  # that of other tests, which know no proxy
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.0/8")
    with pytest.raises(SystemExit, match="no job 42 of "):
        client.main(["42"], str(settings))


@pytest.mark.usefixtures("settings")
def test_an_answer_that_breaks_off_is_none():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def break_off():
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{")

        threading.Thread(target=break_off, daemon=True).start()
        with pytest.raises(SystemExit, match="does not answer: IncompleteRead"):
            client.ask(f"http://127.0.0.1:{listener.getsockname()[1]}", None, "42", 60)


def test_the_client_says_what_is_missing(tmp_path):
    with pytest.raises(SystemExit, match=r"client.json cannot be read"):
        client.main(["42"], str(tmp_path / "client.json"))
