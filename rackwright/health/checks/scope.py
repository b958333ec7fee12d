"""Which nodes a check applies to, decided from the declaration alone."""

from __future__ import annotations

from rackwright.health.expected import Expected

OLD = ("volta", "turing")
"""Architectures that retire pages; later ones remap rows."""
HOPPER_ON = ("hopper", "blackwell")
FULL_MESH = ("cdna3",)


def any_gpus(expected: Expected) -> bool:
    """Nodes with GPUs of any vendor."""
    return expected.gpus is not None


def gpus(expected: Expected) -> bool:
    """Nodes with NVIDIA GPUs."""
    return expected.gpus is not None and expected.gpus.vendor == "nvidia"


def amd(expected: Expected) -> bool:
    """Nodes with AMD GPUs."""
    return expected.gpus is not None and expected.gpus.vendor == "amd"


def xgmi(expected: Expected) -> bool:
    """Boards whose AMD GPUs are connected to each other directly."""
    return amd(expected) and expected.the_gpus().count > 1 and expected.the_gpus().architecture in FULL_MESH


def page_retirement(expected: Expected) -> bool:
    """GPUs before Ampere."""
    return expected.gpus is not None and expected.gpus.architecture in OLD


def row_remapping(expected: Expected) -> bool:
    """Ampere and later; also GPUs whose SKU does not declare the architecture."""
    return gpus(expected) and expected.the_gpus().architecture not in OLD


def recovery_action(expected: Expected) -> bool:
    """All: older drivers report `reset required`, newer ones a recovery action."""
    return gpus(expected)


def nvlink(expected: Expected) -> bool:
    """GPUs with NVLink; also GPUs whose SKU does not declare it."""
    return gpus(expected) and expected.the_gpus().nvlinks != 0


def hbm(expected: Expected) -> bool:
    """Boards with NVLink have HBM with its own sensor and map all of it into BAR1."""
    return expected.gpus is not None and bool(expected.gpus.nvlinks)


def nvswitch(expected: Expected) -> bool:
    """GPUs that are connected through switches."""
    return expected.gpus is not None and expected.gpus.nvswitch in ("node", "rack")


def fabric_state(expected: Expected) -> bool:
    """From Hopper on the driver reports the state of the NVLink fabric."""
    return nvswitch(expected) and expected.the_gpus().architecture in HOPPER_ON


def fabricmanager(expected: Expected) -> bool:
    """Switches on the node's own board."""
    return expected.gpus is not None and expected.gpus.nvswitch == "node"


def imex(expected: Expected) -> bool:
    """Switches in the rack."""
    return expected.gpus is not None and expected.gpus.nvswitch == "rack"


def mig(expected: Expected) -> bool:
    """GPUs that are declared with MIG instances."""
    return expected.gpus is not None and bool(expected.gpus.mig)


def gsp(expected: Expected) -> bool:
    """From Turing on GPUs run GSP firmware that comes with the driver."""
    return gpus(expected) and expected.the_gpus().architecture != "volta"


def rdma(expected: Expected) -> bool:
    """Nodes with InfiniBand or RoCE ports, or on such a fabric."""
    return expected.has_rdma("infiniband", "roce")


def infiniband(expected: Expected) -> bool:
    """Nodes with InfiniBand ports, or on such a fabric."""
    return expected.has_rdma("infiniband")


def roce(expected: Expected) -> bool:
    """Nodes with RoCE ports, or on such a fabric."""
    return expected.has_rdma("roce")


def gpu_direct(expected: Expected) -> bool:
    """Nodes whose GPUs, of any vendor, use a fabric."""
    declared = any(ports.purpose == "fabric" for ports in expected.ports_of("infiniband", "roce"))
    return any_gpus(expected) and (declared or bool(expected.unknown_ports))


def drives(expected: Expected) -> bool:
    """Nodes with declared NVMe drives."""
    return bool(expected.drives)


def named(expected: Expected) -> bool:
    """Nodes of a cluster file."""
    return expected.node is not None
