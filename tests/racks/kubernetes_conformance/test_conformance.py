"""Upstream's conformance tests on the lab's Kubernetes: all that need no image from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests import kubernetes_conformance as conformance
from tests.racks.site import REPO, Site

pytestmark = [pytest.mark.lab, pytest.mark.proof]
HEAD = "cp1"
FOREIGN = {
    "httpd": r"StatefulSet|Deployment|adopt matching pods|should release no longer matching|"
    r"Kubectl (run pod|replace|server-side dry-run)|server-side dry-run",
    "nginx": r"Pods should (be submitted and removed|be updated|allow activeDeadlineSeconds|run through the lifecycle|"
    r"delete a collection)|EndpointSlice|lifecycle of a ReplicationController",
    "redis": "Guestbook",
    "nautilus": "Update Demo",
    "nonewprivs": "should not allow privilege escalation",
    "sample-apiserver": "Aggregator",
    "coredns": "DNS should (provide|resolve)|to ExternalName",
}
"""Image that only a registry of upstream has -> the tests that need it. The lab's DNS server in place of CoreDNS answers for services,
not for pods' names and addresses."""
ALONE = r"\[Serial\]|\[Slow\]|\[Disruptive\]"
"""Tests that take a cluster apart or minutes each; the suite kubernetes kills, drains and preempts by itself."""
FEW = r"Secrets should be consumable from pods in env vars|Watchers should observe add|Services should serve a basic|ResourceQuota should create a ResourceQuota and capture the life of a pod"
_REGISTRIES = ("promoterE2eRegistry", "gcRegistry", "dockerLibraryRegistry", "e2eRegistry")
_ALIASES = {
    "rack.lab/busybox:1.29": "rack.lab/busybox:1.37",
    "rack.lab/jessie-dnsutils:1.0": conformance.AGNHOST,
}
"""Debian's busybox and dig for those of the tests."""


@pytest.fixture(scope="module")
def built() -> Path:
    """The tests' program and image."""
    return conformance.built()


@pytest.fixture(scope="module")
def rack(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A control plane and two workers, applied once, whose containerd has the image."""
    declared = yaml.safe_load((REPO / "inventory" / "kubernetes.yaml").read_text())
    for name in ("gpu_stack_k8s", "health", "kubernetes_scheduling"):
        del declared["roles"][name]
    site = Site(tmp_path_factory.mktemp("kubernetes_conformance"), "k8sconf", declared)
    with site.booted():
        site.apply()
        for node in site.nodes:
            site.send(node, built / "images", "agnhost.tar", to="/root")
            tags = "; ".join(f"ctr -n k8s.io images tag {old} {new}" for new, old in _ALIASES.items())
            site.on(
                node,
                f"ctr -n k8s.io images import /root/agnhost.tar >/dev/null; rm /root/agnhost.tar; {tags}",
            )
        yield site


def run(site: Site, built: Path, focus: str, seconds: float) -> dict[str, str | None]:
    """Name of each test that ran -> why it failed, or None."""
    config, registries, report = (site.folder / name for name in ("admin.conf", "registries.yaml", "report"))
    config.touch(mode=0o600)
    config.write_text(site.on(HEAD, "cat /etc/kubernetes/admin.conf"))
    registries.write_text(yaml.safe_dump(dict.fromkeys(_REGISTRIES, "rack.lab")))
    left_out = "|".join([ALONE, *FOREIGN.values()])
    site.tool(
        *(
            "env",
            f"KUBE_TEST_REPO_LIST={registries}",
            f"HOME={site.folder}",
            f"{built / conformance.PROGRAM}",
        ),
        *("--provider=skeleton", f"--kubeconfig={config}", f"--kubectl-path={built / conformance.KUBECTL}"),
        *(
            "--ginkgo.noColor",
            f"--ginkgo.focus={focus}",
            f"--ginkgo.skip={left_out}",
            f"--report-dir={report}",
        ),
        *("--disable-log-dump", "--dump-logs-on-failure=false", "--ginkgo.seed=1"),
        name="conformance",
        inside=True,
        timeout=seconds,
    )
    (path,) = report.glob("junit_*.xml")
    found = ElementTree.parse(path).getroot().iter("testcase")
    results = {
        one.get("name", ""): failure.text if (failure := one.find("failure")) is not None else None
        for one in found
        if one.find("skipped") is None
    }
    path.unlink()
    return results


def failed(results: dict[str, str | None]) -> dict[str, str]:
    """Failures, each with its last lines."""
    return {name: why.strip()[-600:] for name, why in results.items() if why is not None}


@pytest.mark.smoke
def test_a_few(rack: Site, built: Path):
    results = run(rack, built, rf"({FEW}).*\[Conformance\]", 900)
    assert failed(results) == {}
    assert len(results) >= len(FEW.split("|"))


def test_all_that_need_no_image_from_elsewhere(rack: Site, built: Path):
    results = run(rack, built, r"\[Conformance\]", 5400)
    assert failed(results) == {}
    assert len(results) == 248
    assert not any(re.search(pattern, name) for name in results for pattern in FOREIGN.values())
