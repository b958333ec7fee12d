"""One rack for the set: two heads that both run Prometheus and Alertmanager, and a worker that they watch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import REPO, Site

_NETWORK = "10.93.0"
HEADS = {"head1": f"{_NETWORK}.10", "head2": f"{_NETWORK}.11"}
OTHER_SITE = "127.0.0.1:9190"
"""Where test_sites.py has another site's Prometheus, on the first head."""
WRITER_PASSWORD = "a-writers-password"
_LOGIN = {"user": "writer", "stored_as": "writer_password"}
_KEPT = ("base", "firewall", "site_ca", "time", "node_exporter", "prometheus", "alertmanager")


def declared() -> dict[str, Any]:
    """inventory/drill.yaml with a second head, and without a workload manager."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "drill.yaml").read_text())
    content["networks"]["management"] |= {"cidr": f"{_NETWORK}.0/24", "gateway": f"{_NETWORK}.1"}
    content["mirrors"]["apt_proxy"] = f"http://{_NETWORK}.1:3142"
    place = {"rack": "r1", "switch": "leaf1"}
    content["nodes"] = [
        {
            "nodes": "head[1-2]",
            "roles": ["head"],
            "addresses": {"management": HEADS["head1"]},
            **place,
            "primary": "head1",
        },
        {"nodes": "worker1", "roles": ["worker"], "addresses": {"management": f"{_NETWORK}.20"}, **place},
    ]
    content["defaults"]["lab"] = {"cpus": 2, "memory_mib": 1024}
    roles = {name: options for name, options in content["roles"].items() if name in _KEPT}
    roles["prometheus"] |= {
        "nodes": list(HEADS),
        "labels": {"site": "north"},
        "federate": [{"target": OTHER_SITE, "site": "south", "plain_http": True, "login": _LOGIN}],
        "remote_write": [{"url": f"http://{OTHER_SITE}/api/v1/write", "login": _LOGIN}],
    }
    roles["prometheus"].pop("alerts", None)
    # longer than the second of a pair waits for the first (--cluster.peer-timeout, 15 s), as on a site: else it sends what
    # was true when it began to wait
    roles["alertmanager"] |= {"nodes": list(HEADS), "group_interval_seconds": 20}
    return content | {"roles": roles}


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("pair"), "pa", declared())
    with site.booted():
        site.cli("secrets", "put", "writer_password", str(site.file), stdin=WRITER_PASSWORD)
        site.apply()
        yield site
