"""The DGX example as a lab rack: a head, a login node and two workers of it, on Debian 13, at the size of the lab.

Everything is taken from inventory/example-dgx-h100.yaml; what is replaced here is what a lab cannot be.
"""

from __future__ import annotations

import os
from typing import Any

import yaml
from ClusterShell.NodeSet import NodeSet

from tests.examples import INVENTORY

NODES = tuple(os.environ.get("RACKWRIGHT_TEST_DGX", "head1 login1 gpu001 gpu002").split())
"""Nodes of the example that are booted; fewer in the smoke tier."""
WORKERS = tuple(name for name in NODES if name.startswith("gpu"))
CLIENT = "login1" if "login1" in NODES else "head1"
"""Where users submit jobs."""
BRIDGE = "10.96.0.1"
SERVED = f"http://{BRIDGE}:8080"
"""The site's mirror of files and of NVIDIA's repository."""
REPOSITORY = "cuda/debian13/x86_64"
_SIZE = {"cpus": 2, "memory_mib": 2048}


def declared(fingerprint: str, sha256: dict[str, str]) -> dict[str, Any]:
    """The content of the rack's cluster file; the mirror's key has this fingerprint, its files these digests."""
    content: dict[str, Any] = yaml.safe_load((INVENTORY / "example-dgx-h100.yaml").read_text())
    content["defaults"] = {"os": "debian-13", "platform": "container", "lab": _SIZE}
    content["networks"]["management"] = {
        "purpose": "management",
        "cidr": "10.96.0.0/24",
        "gateway": BRIDGE,
    }
    content["ssh"] = {"user": "rack", "key": ".lab/id_ed25519", "known_hosts": ".lab/known_hosts"}
    content["mirrors"] = {
        "apt_proxy": f"http://{BRIDGE}:3142",
        "containers": content["mirrors"]["containers"],
        "files": SERVED,
    }
    content["nodes"] = list(_groups(content["nodes"]))
    content["gpu_stack"]["package_index"] = [f"mirror/{REPOSITORY}/Packages"]
    _resize(content["roles"])
    content["roles"]["nvidia_driver"] = {
        "repository": f"{SERVED}/{REPOSITORY}",
        "repository_key": "mirror.asc",
        "repository_fingerprint": fingerprint,
    }
    content["roles"]["enroot_pyxis"]["sha256"] = sha256
    # a cache asks its upstream when it starts, and dies of no answer
    content["roles"]["registry_cache"]["registries"]["docker-io"].update(upstream=SERVED, plain_http=True)
    return content


def _groups(groups: list[dict[str, Any]]) -> Any:
    """The groups that the kept nodes are of, with these nodes alone."""
    for group in groups:
        kept = [name for name in NodeSet(group["nodes"]) if name in NODES]
        if not kept:
            continue
        first = 10 if "worker" not in group["roles"] else 100
        addresses = {**group["addresses"], "management": f"10.96.0.{first + NODES.index(kept[0])}"}
        lab = {**_SIZE, "containers": True, "gpus": "simulated"} if "worker" in group["roles"] else _SIZE
        rack = NodeSet(group["rack"])[0]
        yield {
            **group,
            "nodes": str(NodeSet(",".join(kept))),
            "addresses": addresses,
            "lab": lab,
            "rack": rack,
        }


def _resize(roles: dict[str, Any]) -> None:
    """What depends on the nodes that are left, and on the memory and the disks of a lab node."""
    slurm = roles["slurm"]
    del slurm["backups"], slurm["state_dir"], slurm["state_mount"]  # one head
    del slurm["packages"]  # the lab's archive has Debian's alone
    del roles["hpc_stack"]["nccl_tests"]  # compiled by a real nvcc, of which the mirror has none
    slurm["mem_spec_limit_mib"] = 128
    for partition in slurm["partitions"].values():
        partition["nodes"] = str(NodeSet(partition["nodes"]) & NodeSet(",".join(NODES)))
    roles["mariadb"] = {"buffer_pool_mib": 128}
    roles["time"] = {}  # no NTP server is reached
    # the limits are below those of the machine's own processes, which a container cannot raise
    roles["docker"] |= {"data_root": "/scratch/docker", "memlock_mib": 4, "nofile": 16384}
    roles["enroot_pyxis"]["scratch"] = "/scratch"
    roles["health"] |= {"probe_seconds": 30, "prolog_seconds": 30}  # the nodes share a busy machine
