"""What roles take from a lock, and the words when it is not there."""

from __future__ import annotations

import pytest

from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import component, group_of, has_stack, known_bad, locked
from rackwright.lock.lock_file import read_lock
from rackwright.model.cluster import Node
from rackwright.roles.persistence.options import PersistenceOptions
from tests.unit.roles.driver_sites import KERNEL, VERSION, bad_pair, debian

OPTIONS = {"persistence": PersistenceOptions()}


@pytest.fixture
def cluster(tmp_path):
    return debian(tmp_path, OPTIONS)


def _gpu(cluster) -> Node:
    return cluster.by_name["gpu1"]


def test_packages_by_component(cluster):
    group = group_of(cluster, _gpu(cluster))
    assert component(group, "modules") == (
        f"nvidia-open-kernel-dkms={VERSION}-1",
        f"nvidia-open-kernel-support={VERSION}-1",
    )
    assert component(group, "kernel")[0] == f"linux-headers-{KERNEL}=6.1.176-1"
    assert component(group, "dcgm") == ()
    assert set(locked(group, group.packages)) == {
        f"{name}={version}" for name, version in group.packages.items()
    }


def test_what_is_not_there_is_said_with_the_next_step(cluster):
    group = group_of(cluster, _gpu(cluster))
    with pytest.raises(RackwrightError) as refused:
        locked(group, ["nvidia-smi", "nvidia-fabricmanager"])
    assert refused.value.message == "The lock of t4-4x on debian-12 has no nvidia-fabricmanager."
    assert refused.value.hint == "lock again with this version of rackwright"
    with pytest.raises(RackwrightError) as refused:
        group_of(cluster, cluster.by_name["cpu1"])
    assert (
        refused.value.message == "The lock demo.lock.yaml has no entry for cpu1 (cpu-16c-64g on debian-13)."
    )
    assert refused.value.hint == "run: rackwright lock demo.yaml"


def test_a_lock_that_was_written_again_is_read_again(cluster):
    before = read_lock(cluster)
    assert read_lock(cluster) is before
    text = cluster.lock_path.read_text()
    cluster.lock_path.write_text(text.replace("cluster: test", "cluster: other"))
    assert read_lock(cluster).cluster == "other"


def test_a_lock_with_the_section_s_old_name_is_read(cluster):
    now = read_lock(cluster)
    text = cluster.lock_path.read_text()
    assert "\ngpu_stack:" in text
    cluster.lock_path.write_text(text.replace("\ngpu_stack:", "\nwish:"))
    assert read_lock(cluster) == now


def test_who_has_a_stack(cluster):
    assert has_stack(_gpu(cluster))
    assert not has_stack(cluster.by_name["cpu1"])


def test_known_bad_pairs(tmp_path):
    good = debian(tmp_path, OPTIONS)
    assert known_bad(group_of(good, _gpu(good))) is None
    bad = bad_pair(tmp_path, OPTIONS)
    pair = known_bad(group_of(bad, _gpu(bad)))
    assert pair is not None
    assert (pair.package, pair.kernel) == ("nvidia-open-kernel-dkms", "6.12.107")
