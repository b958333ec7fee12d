"""Clusters for the tests of hpc_stack: with a lock that has CUDA and NCCL, and without GPUs to build for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.settings import Mirrors
from rackwright.roles.cuda.options import CudaOptions
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.slurm.options import SlurmOptions
from tests.unit.roles.sites import site as plain_site
from tests.unit.roles.stack_sites import site, worker

SHA = "a" * 64
TESTS = {"version": "2.19.6", "sha256": SHA}
BUILD = HpcStackOptions.model_validate({"mpi": "build"})
WHOLE = HpcStackOptions.model_validate({"mpi": "build", "pmix": {"version": "4.2.9"}, "nccl_tests": TESTS})
NCCL = {"libnccl2": "2.30.4-1+cuda13.0", "libnccl-dev": "2.30.4-1+cuda13.0"}


def gpu_site(folder: Path, options: HpcStackOptions, *, locked: bool = True, **roles: RoleOptions) -> Cluster:
    """gpu1 with a locked CUDA 13.0 and NCCL 2.30.4."""
    given: dict[str, RoleOptions] = {
        "cuda": CudaOptions(),
        "hpc_stack": options,
        "slurm": SlurmOptions(),
        **roles,
    }
    made = site(folder, given, worker("gpu1", 11, "dgx-h100"), mirrors=Mirrors())
    if locked:
        text = made.lock_path.read_text().replace("  cuda: null\n", "  cuda: '13.0'\n")
        lines = "".join(f"    {name}: {version}\n" for name, version in NCCL.items())
        text = text.replace("  packages:\n", f"  packages:\n    cuda-toolkit-13-0: 13.0.3-1\n{lines}")
        parts = "    cuda: [cuda-toolkit-13-0]\n    nccl: [libnccl2, libnccl-dev]\n"
        made.lock_path.write_text(text.replace("  components:\n", f"  components:\n{parts}"))
    return made


def cpu_site(options: HpcStackOptions, **changes: Any) -> Cluster:
    """Nodes with GPUs on the label, and no lock."""
    return plain_site({"hpc_stack": options}, **changes)
