"""What a stranger types, in the mapping it is typed in: the word that was meant, or the list."""

from __future__ import annotations

import time

import pytest

from rackwright.clusterfile.fields import known_keys
from rackwright.clusterfile.file import ClusterFile, NetworkSection, NodeGroup
from rackwright.clusterfile.roles import options_class, role_names
from rackwright.documents.nearest import nearest, suggest
from rackwright.model.settings import Burnin, Mirrors, Ssh, Waves
from rackwright.model.sku import Gpus, SkuEntry
from rackwright.model.types import LinkKind, NodeRole, Platform

FILE, GROUP, NETWORK, SSH, WAVES = (
    known_keys(one, ()) for one in (ClusterFile, NodeGroup, NetworkSection, Ssh, Waves)
)
SKU, GPUS, BURNIN, MIRRORS = (known_keys(one, ()) for one in (SkuEntry, Gpus, Burnin, Mirrors))
SLURM = known_keys(options_class("slurm"), ())
PARTITION = known_keys(options_class("slurm"), ("partitions", "x"))


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("hosts", FILE, "nodes"),
        ("node", FILE, "nodes"),
        ("netwroks", FILE, "networks"),
        ("gpuStack", FILE, "gpu_stack"),
        ("gpu-stack", FILE, "gpu_stack"),
        ("burn-in", FILE, "burnin"),
        ("services", FILE, "roles"),
        ("hostname", GROUP, "nodes"),
        ("ip", GROUP, "addresses"),
        ("address", GROUP, "addresses"),
        ("adresses", GROUP, "addresses"),
        ("gpu_type", GROUP, "sku"),
        ("gpu_type", GPUS, "gres_type"),
        ("role", GROUP, "roles"),
        ("switches", GROUP, "switch"),
        ("leaf", GROUP, "switch"),
        ("mac-addresses", GROUP, "macs"),
        ("subnet", NETWORK, "cidr"),
        ("vlan_id", NETWORK, "vlan"),
        ("type", NETWORK, "kind"),
        ("proxy_jump", SSH, "jump_host"),
        ("known-hosts", SSH, "known_hosts"),
        ("conect_timeout", SSH, None),
        ("pause", WAVES, "pause_seconds"),
        ("cores_per_sokcet", SKU, "cores_per_socket"),
        ("memory", SKU, "memory_mib"),
        ("floor_busbw", BURNIN, "floor_busbw_gbs"),
        ("walltime", PARTITION, "max_time"),
        ("MaxTime", PARTITION, "max_time"),
        ("partition", SLURM, "partitions"),
        ("nvidia-drivers", role_names(), "nvidia_driver"),
        ("enroot", role_names(), "enroot_pyxis"),
        ("compute", tuple(NodeRole), "worker"),
        ("baremetal", tuple(Platform), "bare-metal"),
        ("IB", tuple(LinkKind), "infiniband"),
        (["worker"], tuple(NodeRole), "worker"),
    ],
)
def test_what_was_meant(typed, known, meant):
    assert nearest(typed, known) == (None if meant is None else f"did you mean `{meant}`?")


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("colour", NETWORK),
        ("owner", GROUP),
        ("tags", GROUP),
        ("labels", GROUP),
        ("ntp", SSH),
        ("id", GROUP),
        ("asset", GROUP),
        ("bonding", NETWORK),
        ("yum", MIRRORS),
        ("x" * 5000, FILE),
        ("", FILE),
        (7, FILE),
        ({}, FILE),
    ],
)
def test_what_is_near_nothing_gets_the_list_or_a_few_of_many(typed, known):
    assert nearest(typed, known) is None
    hint = suggest(typed, known, what="known keys")
    if len(known) <= 12:
        assert hint == f"known keys: {', '.join(known)}"
    else:
        start, _, few = hint.partition(": ")
        assert start == f"known keys, the nearest of {len(known)}"
        assert len(few.split(", ")) == 5
        assert set(few.split(", ")) <= set(known)


def test_equally_near_words_are_all_offered_and_a_few_at_most():
    assert (
        nearest("debian-14", ["debian-12", "debian-13", "rocky-9"])
        == "did you mean `debian-12` or `debian-13`?"
    )
    many = [f"gpu{number:03}" for number in range(200)]
    assert nearest("gpu20", many) == "did you mean `gpu020`, `gpu120`?".replace(", ", " or ")
    assert nearest("gpu1x1", many) == "did you mean `gpu101`, `gpu111` or `gpu121`?"


def test_a_name_among_twenty_thousand_takes_no_time():
    names = [f"gpu{number:05}" for number in range(20_000)]
    began = time.process_time()
    assert nearest("gpu1234", names) is not None
    assert time.process_time() - began < 2


def test_of_many_keys_the_nearest_few_are_listed():
    assert suggest("prologue_timeout", SLURM, what="known keys") == (
        f"known keys, the nearest of {len(SLURM)}: private_tmp, timeouts, private_tmp_dir, state_mount, block_sizes"
    )
    nodes = [f"gpu{number:03}" for number in range(1, 129)] + ["login1", "head1"]
    found = suggest("logging-host", nodes, what="nodes")
    assert found.startswith("nodes, the nearest of 130: login1, ")


def test_a_few_are_all_listed():
    assert suggest("xyzzy", ["alpha", "beta"], what="networks") == "networks: alpha, beta"


def test_the_nearest_of_very_many_take_no_time():
    names = [f"rack{number // 40:03}-node{number % 40:02}" for number in range(20_000)]
    began = time.process_time()
    assert suggest("switch-17", names, what="nodes").startswith("nodes, the nearest of 20000: ")
    assert time.process_time() - began < 1
