"""Checks of the cuda role."""

from __future__ import annotations

import re

from rackwright.catalog.table_files import cuda_table
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, loaded_driver
from rackwright.lock.for_roles import group_of
from rackwright.lock.versions import at_least
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.cuda.options import CudaOptions, tools


def parse_nvcc(text: str) -> str:
    """`Cuda compilation tools, release 11.8, V11.8.89`: the release."""
    found = re.search(r"\brelease (\d+\.\d+),", text)
    if found is None:
        raise Undetermined(f"nvcc reports no release: {text.strip()[:80]!r}")
    return found[1]


def _release(context: CheckContext[CudaOptions]) -> str:
    group = group_of(context.cluster, context.node)
    found = parse_nvcc(context.output("%s --version", f"{tools(group)}/nvcc"))
    if found != group.cuda:
        fail(f"nvcc is release {found}, not the locked {group.cuda}")
    return found


def _found_by_shells(context: CheckContext[CudaOptions]) -> str:
    wanted = f"{tools(group_of(context.cluster, context.node))}/nvcc"
    result = context.host.run("bash -lc %s", "command -v nvcc")
    if result.rc in (126, 127):
        raise Undetermined("cannot run `bash`: not found")
    found = str(result.stdout).strip()
    if found != wanted:
        fail(f"a login shell finds {found or 'no nvcc'}, not {wanted}")
    return found


def _runs_on_driver(context: CheckContext[CudaOptions]) -> str:
    release = group_of(context.cluster, context.node).cuda or ""
    floor = next((row.driver for row in cuda_table().floors if str(row.major) == release.split(".")[0]), None)
    if floor is None:
        raise Undetermined(f"the tables do not list which driver CUDA {release} needs")
    driver = loaded_driver(context)
    if not at_least(driver, floor):
        fail(f"driver {driver} is loaded, but CUDA {release} needs {floor} or newer")
    return f"driver {driver}, at least {floor} is needed"


def _sets_path(node: Node, options: CudaOptions) -> bool:
    return options.profile


CHECKS = (
    Check("the CUDA toolkit is installed as locked and held", as_locked),
    Check("nvcc is the locked release", _release),
    Check("login shells find the locked toolkit", _found_by_shells, applies=_sets_path),
    Check(
        "the loaded driver can run the toolkit",
        _runs_on_driver,
        needs=frozenset({Capability.KERNEL_MODULES}),
    ),
)
