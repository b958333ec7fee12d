"""What an evaluation depends on besides the nodes: a change of it makes every cached answer worthless."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.factcache.cache import version_key
from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole
from rackwright.roles.kubernetes.options import KubernetesOptions
from rackwright.roles.kubernetes_addons.options import KubernetesAddonsOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import make_cluster, make_node
from tests.unit.roles.kubernetes_sites import RUNTIME


def _cluster(folder: Path) -> Cluster:
    options = {
        "containerd": RUNTIME,
        "kubernetes": KubernetesOptions(version="1.34.2", mirror=Path("mirror.json")),
        "kubernetes_addons": KubernetesAddonsOptions(addons={"kueue": {"file": "addons/kueue.yaml"}}),
        "site_ca": SiteCaOptions(extra_trust=(Path("other.pem"),)),
    }
    node = make_node("head1", 10, NodeRole.HEAD, options=options)
    return make_cluster(node, path=folder / "cluster.yaml")


@pytest.mark.parametrize("name", ["mirror.json", "addons/kueue.yaml", "other.pem"])
def test_a_file_that_options_name(tmp_path, name):
    cluster = _cluster(tmp_path)
    before = version_key(cluster)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("one")
    written = version_key(cluster)
    (tmp_path / name).write_text("two")
    assert len({before, written, version_key(cluster)}) == 3
