"""A real Prometheus that reads recorded exporters: what hardware of ours cannot serve, hardware of others has served.

A small server on localhost serves the recorded documents as the exporters of tests.unit.dashboards.site's cluster. Counters
grow with time; where a file has names alone, the value and the device are invented. The distribution's Prometheus scrapes
it with the recording rules of that cluster.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.declared import declared_groups
from rackwright.alerts.rule import Recording, RuleGroup
from rackwright.alerts.text import rule_file
from rackwright.model.cluster import Cluster, Node
from rackwright.prometheus.program import Asker, Failed
from tests.unit.dashboards.known_metrics import RECORDED, UNRECORDED

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)")
_NODES_OF_SLURM = {"worker1": "gpu1", "worker2": "gpu2"}
_INVENTED = '{device="mlx5_0",port="1"}'
"""Labels of a metric of which nothing but its name is known."""
_JOBS = ("node", "ipmi", "slurm")
_GROWTH = 1_000_000
"""A second, of each counter."""


def document(job: str, elapsed: float) -> str:
    """Everything that was recorded of a job, once each, after so many seconds."""
    texts = [path.read_text() for path in sorted(RECORDED.glob(f"{job}*.prom"))]
    texts.append("\n".join(line for line in UNRECORDED.read_text().splitlines() if f" {job}_" in line))
    kinds: dict[str, str] = {}
    samples: dict[str, float] = {}
    for line in "\n".join(texts).splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            kinds.setdefault(name, kind)
        elif (found := _SAMPLE.fullmatch(line)) is not None:
            samples.setdefault(f"{found[1]}{found[2] or ''}", float(found[3]))
    named = {series.partition("{")[0] for series in samples}
    samples |= {
        f"{name}{_INVENTED}": 1.0
        for name, kind in kinds.items()
        if name not in named and kind in ("counter", "gauge", "untyped")
    }
    lines = []
    for series in sorted(samples):
        name = series.partition("{")[0]
        grown = (
            elapsed * _GROWTH if kinds.get(name) in ("counter", "untyped") else 0
        )  # ethtool's have no type
        lines.append(f"{series} {samples[series] + grown!r}")
    return "\n".join(lines) + "\n"


@contextmanager
def recorded_prometheus(cluster: Cluster, folder: Path) -> Iterator[Asker]:
    """Who asks it, once every target has been read several times."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.fail("prometheus is missing: apt-get install --no-install-recommends prometheus")
    port = _free_port()
    with _exporters() as exporters:
        _write(folder, cluster, exporters)
        arguments = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [program, *arguments, f"--web.listen-address=127.0.0.1:{port}"], stderr=log
            )
        try:
            asker = _asker(folder, port)
            _settle(asker, folder)
            yield asker
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def _exporters() -> Iterator[int]:
    """Serves /JOB; the port."""
    began = time.time()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = document(self.path.strip("/"), time.time() - began).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _write(folder: Path, cluster: Cluster, exporters: int) -> None:
    recordings = (
        *declared_groups(cluster),
        *(
            RuleGroup(one.name, tuple(rule for rule in one.rules if isinstance(rule, Recording)))
            for one in GROUPS
        ),
    )
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"},
        "rule_files": [f"{folder}/rules.yml"],
        "scrape_configs": [
            {
                "job_name": job,
                "metrics_path": f"/{job}",
                "honor_labels": job == "slurm",
                "static_configs": [
                    {"targets": [f"127.0.0.1:{exporters}"], "labels": _labels(node)}
                    for node in cluster.nodes
                    if job != "slurm" or node.primary
                ],
                **({"metric_relabel_configs": _renamed()} if job == "slurm" else {}),
            }
            for job in _JOBS
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (folder / "rules.yml").write_text(rule_file(recordings, frozenset(_JOBS)))


def _renamed() -> list[dict[str, object]]:
    """Nodes of the rack that it was recorded on."""
    return [
        {"source_labels": ["node"], "regex": there, "target_label": "node", "replacement": here}
        for there, here in _NODES_OF_SLURM.items()
    ]


def _labels(node: Node) -> dict[str, str]:
    return {
        "instance": node.name,
        "node": node.name,
        "rack": node.rack or "",
        "leaf": node.switch or "",
        "sku": node.sku.name,
        "role": "head" if node.primary else "worker",
    }


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _asker(folder: Path, port: int) -> Asker:
    (folder / "password").write_text("none is asked for\n")
    limits = {"query_seconds": 20, "seconds": 600, "answer_bytes": 8 << 20, "bytes": 1 << 30}
    login = {"user": "nobody", "password_file": f"{folder}/password", "ca_file": None}
    return Asker({"url": f"http://127.0.0.1:{port}", **login, "limits": limits})


def _settle(asker: Asker, folder: Path) -> None:
    """Until each target has been read five times, so that rates have something to go by."""
    end = time.monotonic() + 120
    query = {"query": "min(count_over_time(up[5m])) >= 5 and min(up) == 1"}
    while True:
        try:
            asker.now = time.time()
            if asker.series(query):
                return
        except Failed as error:  # it has not begun to listen
            last = str(error)
        else:
            last = "its targets are not up"
        assert time.monotonic() < end, (
            f"Prometheus: {last}\n{(folder / 'log').read_text()[-3000:]}\n{json.dumps(query)}"
        )
        time.sleep(0.5)
