"""One rack for the set: inventory/slurm-on-kubernetes.yaml, booted once, applied once from bare nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.program import Ran
from tests.racks.site import REPO, Site

HEAD = "cp1"
WORKERS = ("worker1", "worker2")
KUBECTL = "kubectl --kubeconfig /etc/kubernetes/admin.conf --namespace slurm"


def declared() -> dict[str, Any]:
    """The shipped file."""
    text = (REPO / "inventory" / "slurm-on-kubernetes.yaml").read_text()
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def kubectl(site: Site, arguments: str, timeout: float = 120) -> str:
    """What kubectl prints of Slurm's namespace."""
    return site.on(HEAD, f"{KUBECTL} {arguments}", timeout)


def in_login(site: Site, command: str, timeout: float = 180) -> str:
    """Run a command where users work."""
    return kubectl(site, f"exec deployment/login --container login -- {command}", timeout)


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack of the set, up and bare."""
    site = Site(tmp_path_factory.mktemp("slurm_on_kubernetes"), "sk8s", declared())
    with site.booted():
        yield site


@pytest.fixture(scope="session")
def first_apply(booted: Site) -> Ran:
    """From bare nodes to Slurm in pods."""
    return booted.apply(expect=0)


@pytest.fixture
def rack(booted: Site, first_apply: Ran, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired first if a test failed."""
    assert first_apply.status == 0
    put_right(booted)
    return booted
