"""What Prometheus needs for many nodes: memory, CPU, time of its rules, size of its head block.

    python -m tests.bench.metrics_scale TARGETS SERIES

The distribution's Prometheus on this machine reads as many simulated targets (tests.bench.scrape_farm), each with so
many series like those of a recorded node_exporter, every 30 s, and evaluates the rules of a cluster with all jobs. The
figures are Prometheus' own, after its first minutes.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from rackwright.alerts.catalogue import GROUPS
from rackwright.alerts.text import rule_file

RECORDED = Path(__file__).resolve().parents[1] / "unit/alerts/recorded/node.prom"
FARM_PORT, PORT = 29100, 29090
INTERVAL_SECONDS = 30
SETTLE_SECONDS = 240
"""Eight scrapes: every series exists, and rates have their ranges."""
_CONFIG = f"""\
global: {{scrape_interval: {INTERVAL_SECONDS}s, evaluation_interval: {INTERVAL_SECONDS}s}}
rule_files: [rules.yml]
scrape_configs:
- job_name: node
  file_sd_configs: [{{files: [targets.json]}}]
- job_name: prometheus
  static_configs: [{{targets: ["127.0.0.1:{PORT}"]}}]
"""


def main(targets: int, series: int) -> None:
    """Prints a JSON document."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metrics-scale-")))
        _write(folder, targets)
        farm = [sys.executable, "-m", "tests.bench.scrape_farm", str(FARM_PORT), str(RECORDED), str(series)]
        for command in (
            farm,
            [
                *(str(shutil.which("prometheus")), f"--config.file={folder}/prometheus.yml"),
                *(f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{PORT}"),
            ],
        ):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(_end, process)
        time.sleep(SETTLE_SECONDS)
        print(json.dumps(measured(targets, folder), indent=2))


def measured(targets: int, folder: Path) -> dict[str, float | int]:
    """Prometheus' own figures of the last two minutes."""
    series = value("prometheus_tsdb_head_series")
    memory = value('process_resident_memory_bytes{job="prometheus"}')
    return {
        "targets": targets,
        "targets up": int(value('sum(up{job="node"})')),
        "series": int(series),
        "samples a second": round(value("rate(prometheus_tsdb_head_samples_appended_total[2m])")),
        "resident MiB": round(memory / 2**20),
        "bytes a series": round(memory / series),
        "CPU cores": round(value('rate(process_cpu_seconds_total{job="prometheus"}[2m])'), 3),
        "rule groups, seconds": round(value("sum(prometheus_rule_group_last_duration_seconds)"), 3),
        "slowest rule group, seconds": round(value("max(prometheus_rule_group_last_duration_seconds)"), 3),
        "rules": int(value("sum(prometheus_rule_group_rules)")),
        "missed evaluations": int(value("sum(prometheus_rule_group_iterations_missed_total)")),
        "slowest scrape, seconds": round(value("max(scrape_duration_seconds)"), 3),
        "head block MiB": round(
            sum(one.stat().st_size for one in folder.rglob("data/**/*") if one.is_file()) / 2**20
        ),
    }


def value(expression: str) -> float:
    """The one value of an expression."""
    url = f"http://127.0.0.1:{PORT}/api/v1/query?query={urllib.parse.quote(expression)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        result = json.load(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0


def _write(folder: Path, targets: int) -> None:
    jobs = frozenset(job for group in GROUPS for rule in group.rules for job in rule.jobs)
    (folder / "prometheus.yml").write_text(_CONFIG)
    (folder / "rules.yml").write_text(rule_file(GROUPS, jobs))
    entries = [
        {
            "targets": [f"127.0.0.1:{FARM_PORT}"],
            "labels": {
                "instance": f"gpu{number:05}:9100",
                "node": f"gpu{number:05}",
                "rack": f"r{number // 8}",
                "leaf": f"leaf{number // 32}",
                "sku": "dgx-h100",
                "role": "worker",
            },
        }
        for number in range(targets)
    ]
    (folder / "targets.json").write_text(json.dumps(entries))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
