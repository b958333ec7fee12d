"""Many sites: another site's Prometheus is federated and written to. It is a real one, on the first head's loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from rackwright.secrets.hashed import bcrypt_hash
from tests.racks.alerts_pair.asking import own, until
from tests.racks.alerts_pair.conftest import OTHER_SITE, WRITER_PASSWORD
from tests.racks.site import Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_FOLDER = "/run/rackwright-test-south"
_UNIT = "rackwright-test-south"
_RULES = {
    "groups": [
        {
            "name": "south",
            "rules": [
                {
                    "record": "gpu:xid:last",
                    "expr": "vector(79)",
                    "labels": {"node": "worker1", "gpu": "0", "xid": "79"},
                },
                {"alert": "SouthWatchdog", "expr": "vector(1)"},
            ],
        }
    ]
}
_CONFIG = {
    "global": {
        "scrape_interval": "2s",
        "evaluation_interval": "2s",
        "external_labels": {"cluster": "southern"},
    },
    "rule_files": [f"{_FOLDER}/rules.yml"],
    "scrape_configs": [  # a node that is down there, and has the name of one here
        {"job_name": "node", "static_configs": [{"targets": ["127.0.0.1:1"], "labels": {"node": "worker1"}}]}
    ],
}


def _start(rack: Site) -> None:
    rack.on(
        "head1",
        f"systemd-run --quiet --unit={_UNIT} --property=User=prometheus prometheus --config.file={_FOLDER}/prometheus.yml "
        f"--storage.tsdb.path={_FOLDER}/data --web.listen-address={OTHER_SITE} --web.config.file={_FOLDER}/web.yml "
        "--web.enable-remote-write-receiver",
    )


def _stop(rack: Site) -> None:
    rack.on("head1", f"systemctl stop {_UNIT} 2>/dev/null || :")


@pytest.fixture(scope="module")
def south(rack: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The other site's Prometheus runs; it wants the writer's password of everyone."""
    made: Path = tmp_path_factory.mktemp("south")
    users = {"writer": bcrypt_hash(WRITER_PASSWORD, salt_key="test", salt_of="south", cost=5)}
    for name, content in {
        "prometheus.yml": _CONFIG,
        "rules.yml": _RULES,
        "web.yml": {"basic_auth_users": users},
    }.items():
        (made / name).write_text(yaml.safe_dump(content))
    rack.send("head1", made, ".", to=_FOLDER)
    rack.on("head1", f"mkdir -p {_FOLDER}/data && chown -R prometheus: {_FOLDER}")
    _start(rack)
    yield rack
    _stop(rack)
    rack.on("head1", f"rm -rf {_FOLDER}")


def _there(rack: Site, expression: str) -> list[dict[str, object]]:
    """What the other site's Prometheus answers."""
    return own(rack, "head1", expression, url=f"http://{OTHER_SITE}", login=f'"writer:{WRITER_PASSWORD}"')


def test_another_site_s_series_are_here_under_names_of_their_own(south: Site):
    for expression in (
        'site:up{site="south",node="worker1",job="node",cluster="southern"} == 0',
        'site:gpu:xid:last{site="south",node="worker1"} == 79',
        'site:ALERTS{site="south",alertname="SouthWatchdog"}',
    ):
        until(lambda one=expression: own(south, "head1", one), expression)


def test_another_site_s_faults_raise_no_alert_here(south: Site):
    """They last far longer than these alerts wait on this rack."""
    until(lambda: own(south, "head1", "site:gpu:xid:last"), "another site's series")
    time.sleep(30)
    assert own(south, "head1", 'ALERTS{alertname=~"NodeDown|GpuXid.*"}') == []
    assert own(south, "head1", 'up{job="node",node="worker1"} == 0') == []


def test_samples_are_sent_with_the_site_and_the_head_that_read_them(south: Site):
    labels = f'job="node",node="worker1",cluster="{south.name}",site="north",replica="head1"'
    until(lambda: _there(south, f"up{{{labels}}} == 1"), "samples of the first head")
    assert _there(south, 'up{site="north",replica=""}') == []


def test_what_was_read_while_the_other_site_was_away_is_sent_later(south: Site):
    written = 'up{job="node",node="worker1",replica="head1"}'
    until(lambda: _there(south, written), "samples of the first head")
    _stop(south)
    began = time.time()
    time.sleep(25)
    ended = time.time()
    _start(south)
    middle = (began + ended) / 2
    until(
        lambda: _there(south, f"count_over_time({written}[20s] @ {middle:.0f}) >= 4"), "samples of the outage"
    )


def test_our_recorded_series_are_for_who_has_the_password(south: Site):
    ask = "curl -s -m 20 -G --data-urlencode 'match[]={__name__=~\"rackwright_declared_.+\"}'"
    url = "https://10.93.0.10:9090/federate"
    assert "Unauthorized" in south.on("head1", f"{ask} {url}")
    reported = south.on(
        "head1", f'{ask} -u "prometheus:$(cat /etc/rackwright-exporters/prometheus/password)" {url}'
    )
    assert f'cluster="{south.name}"' in reported
    assert 'site="north"' in reported
