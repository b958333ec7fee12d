"""Series as Prometheus has them, with the labels of their targets."""

from __future__ import annotations

import json

GPU1 = {"node": "gpu1", "rack": "r1", "leaf": "leaf1", "sku": "hgx-h100"}
HEAD1 = {"node": "head1", "rack": "r1", "sku": "head"}
UUID = "GPU-0a"
GPU = {**GPU1, "gpu": "0", "UUID": UUID}
"""What is recorded of a GPU."""

NODE = {**GPU1, "job": "node", "instance": "gpu1:9100", "role": "worker"}
HEAD = {**HEAD1, "job": "node", "instance": "head1:9100", "role": "head"}
PROMETHEUS = {**HEAD1, "job": "prometheus", "instance": "head1:9090", "role": "head"}
ALERTMANAGER = {**HEAD1, "job": "alertmanager", "instance": "head1:9093", "role": "head"}
MARIADB = {**HEAD1, "job": "mariadb", "instance": "head1:9104", "role": "head"}
BMC = {**GPU1, "job": "ipmi", "instance": "10.1.0.11", "role": "worker"}
PROBED = {**GPU1, "job": "blackbox", "instance": "10.0.0.11", "role": "worker"}
SWITCH = {
    "job": "snmp",
    "kind": "switch",
    "switch": "leaf1",
    "leaf": "leaf1",
    "rack": "r1",
    "instance": "10.1.0.201",
}
SLURM = {"job": "slurm", "instance": "head1:9341"}
"""What targets have."""


def series(name: str, /, **labels: str) -> str:
    """As promtool's input_series names it."""
    inner = ",".join(f"{label}={json.dumps(value)}" for label, value in sorted(labels.items()) if value)
    return f"{name}{{{inner}}}"


def node(name: str, /, **labels: str) -> str:
    """Of node_exporter on gpu1, or on another worker."""
    who = labels.get("node", "gpu1")
    return series(name, **{**NODE, "instance": f"{who}:9100", **labels})


def head(name: str, /, **labels: str) -> str:
    """Of node_exporter on head1."""
    return series(name, **{**HEAD, **labels})


def dcgm(field: str, /, **labels: str) -> str:
    """Of dcgm-exporter on gpu1."""
    own = {
        "job": "dcgm",
        "instance": "gpu1:9400",
        "role": "worker",
        **GPU,
        "device": f"nvidia{labels.get('gpu', '0')}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "gpu1",
    }
    return series(f"DCGM_FI_{field}", **{**own, **labels})


def slurm(name: str, /, **labels: str) -> str:
    """Of slurm_exporter, whose series name their nodes and jobs themselves."""
    return series(name, **{**SLURM, **labels})


def mariadb(name: str, /, **labels: str) -> str:
    """Of mysqld_exporter on head1."""
    return series(name, **{**MARIADB, **labels})


def blackbox(name: str, /, **labels: str) -> str:
    """Of blackbox_exporter, about gpu1 unless another node is given."""
    return series(name, **{**PROBED, **labels})


def ipmi(name: str, /, **labels: str) -> str:
    """Of ipmi_exporter, about gpu1's BMC."""
    return series(name, **{**BMC, **labels})


def snmp(name: str, /, **labels: str) -> str:
    """Of snmp_exporter, about leaf1 unless a device is given."""
    own = {"job": "snmp", "rack": "r1", "instance": "10.1.0.211"} if "device" in labels else SWITCH
    return series(name, **{**own, **labels})


def prometheus(name: str, /, **labels: str) -> str:
    """Of Prometheus on head1."""
    return series(name, **{**PROMETHEUS, **labels})


def alertmanager(name: str, /, **labels: str) -> str:
    """Of Alertmanager on head1."""
    return series(name, **{**ALERTMANAGER, **labels})


def declared(name: str, /, **labels: str) -> str:
    """Of the declared truth, about gpu1."""
    return series(f"rackwright_declared_{name}", **{**GPU1, **labels})
