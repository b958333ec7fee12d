"""Compute capabilities of GPUs, and the CUDA releases whose nvcc compiles for them."""

from __future__ import annotations

from rackwright.model.sku import Architecture, Gpus

# https://developer.nvidia.com/cuda-gpus and /cuda-legacy-gpus, read 2026-11-23. By the first match of the model's
# name, else by architecture where it has only one.
_BY_MODEL = (
    ("A100", "8.0"),
    ("A30", "8.0"),
    ("A40", "8.6"),
    ("A10", "8.6"),
    ("A16", "8.6"),
    ("B200", "10.0"),
    ("GB200", "10.0"),
    ("B300", "10.3"),
    ("GB300", "10.3"),
    ("RTX PRO", "12.0"),
)
_BY_ARCHITECTURE = {
    Architecture.VOLTA: "7.0",
    Architecture.TURING: "7.5",
    Architecture.ADA: "8.9",
    Architecture.HOPPER: "9.0",
}
# First release, and the first that no longer has it: en.wikipedia.org/wiki/CUDA, table "GPUs supported", and
# nccl-tests v2.19.6, src/common.mk, about 10.0, 12.0 and the end of 7.0; both read 2026-11-23. 10.3: not confirmed,
# so nvcc itself has to refuse it.
_NVCC: dict[str, tuple[tuple[int, int], tuple[int, int] | None]] = {
    "7.0": ((9, 0), (13, 0)),
    "7.5": ((10, 0), None),
    "8.0": ((11, 0), None),
    "8.6": ((11, 1), None),
    "8.9": ((11, 8), None),
    "9.0": ((11, 8), None),
    "10.0": ((12, 8), None),
    "12.0": ((12, 8), None),
}


def capability_of(gpus: Gpus) -> str | None:
    """E.g. `9.0`; None: not known."""
    named = next((capability for name, capability in _BY_MODEL if gpus.model.startswith(name)), None)
    return named or (_BY_ARCHITECTURE.get(gpus.architecture) if gpus.architecture is not None else None)


def gencode(capabilities: tuple[str, ...]) -> str:
    """nvcc's flags for exactly these GPUs."""
    codes = (capability.replace(".", "") for capability in capabilities)
    return " ".join(f"-gencode=arch=compute_{code},code=sm_{code}" for code in codes)


def compiles(cuda: str, capability: str) -> str | None:
    """Why a CUDA release cannot compile for a capability; None: it can, or that is not known."""
    if capability not in _NVCC:
        return None
    first, gone = _NVCC[capability]
    major, _, minor = cuda.partition(".")
    release = int(major), int(minor or 0)
    if release < first:
        return f"CUDA {cuda} does not compile for compute capability {capability}, {first[0]}.{first[1]} is the first"
    if gone is not None and release >= gone:
        return f"CUDA {cuda} no longer compiles for compute capability {capability}"
    return None
