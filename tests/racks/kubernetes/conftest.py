"""One rack for the set: inventory/kubernetes.yaml, booted once, applied once from bare nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.lab.kubelet_node import SYSCTLS
from tests.racks.program import Ran
from tests.racks.site import REPO, Site

WORKERS = ("worker1", "worker2")
HEAD = "cp1"
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf"


def declared() -> dict[str, Any]:
    """The shipped file."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "kubernetes.yaml").read_text())
    return content


def kubectl(site: Site, arguments: str, head: str = HEAD, timeout: float = 120) -> str:
    """What kubectl prints on a control-plane node."""
    return site.on(head, f"{KUBECTL} {arguments}", timeout)


def objects(site: Site, *documents: dict[str, Any], head: str = HEAD) -> None:
    """Apply objects as a user of the cluster would."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    site.on(head, f"{KUBECTL} apply -f - <<'OBJECTS'\n{text}\nOBJECTS", 120)


def ready(site: Site, node: str, head: str = HEAD) -> bool:
    """Whether the API has a node as Ready; False while it does not answer."""
    path = "'{.status.conditions[?(@.type==\"Ready\")].status}'"
    return (
        kubectl(site, f"get node {node} -o jsonpath={path} --ignore-not-found || :", head).strip() == "True"
    )


@pytest.fixture(scope="session")
def machine_values() -> dict[str, str]:
    """Kernel values that a kubelet wants otherwise, as this machine has them without a rack."""
    return {name: Path("/proc/sys", name).read_text() for name in SYSCTLS}


@pytest.fixture(scope="session")
def booted(machine_values: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack of the set, up and bare."""
    assert machine_values
    site = Site(tmp_path_factory.mktemp("kubernetes"), "k8s", declared())
    with site.booted():
        yield site


@pytest.fixture(scope="session")
def first_apply(booted: Site) -> Ran:
    """From bare nodes to a cluster."""
    return booted.apply(expect=0)


@pytest.fixture
def rack(booted: Site, first_apply: Ran, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired first if a test failed."""
    assert first_apply.status == 0
    put_right(booted)
    return booted
