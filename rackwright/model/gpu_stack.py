"""The `gpu_stack` section, which `rackwright lock` resolves to exact versions.

The lock picks values that are left out from the shipped tables and writes them to the lock file; a value that is
set is used or refused, never replaced.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo

from rackwright.documents.yaml_data import Data
from rackwright.model.options import Frozen
from rackwright.model.text import mistake

_BRANCH = re.compile(r"[0-9]{3}")
_DRIVER = re.compile(r"[0-9]{3}(\.[0-9]+){1,2}")
_CUDA = re.compile(r"[0-9]{2}\.[0-9]|none")
_THREE = re.compile(r"[0-9]+(\.[0-9]+){1,2}")
_THREE_OR_NONE = re.compile(r"[0-9]+(\.[0-9]+){1,2}|none")


def _matching(pattern: re.Pattern[str], what: str, example: str) -> BeforeValidator:
    def check(value: Data) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise mistake("Expected text; this is a number.", f'put it in quotes, e.g. `"{example}"`')
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise mistake(f"Not a valid {what}.", f'e.g. `"{example}"`')
        return value

    return BeforeValidator(check)


def _schema(pattern: re.Pattern[str], example: str) -> FieldInfo:
    info: FieldInfo = Field(json_schema_extra={"pattern": f"^({pattern.pattern})$", "examples": [example]})
    return info


BranchText = Annotated[str, _matching(_BRANCH, "driver branch", "580"), _schema(_BRANCH, "580")]
DriverText = Annotated[
    str, _matching(_DRIVER, "driver version", "580.173.02"), _schema(_DRIVER, "580.173.02")
]
CudaText = Annotated[str, _matching(_CUDA, "CUDA release", "13.0"), _schema(_CUDA, "13.0")]
VersionText = Annotated[str, _matching(_THREE, "version", "1.20.0"), _schema(_THREE, "1.20.0")]
VersionOrNone = Annotated[
    str, _matching(_THREE_OR_NONE, "version", "1.20.0"), _schema(_THREE_OR_NONE, "1.20.0")
]
"""A version, or `none` to leave the component out."""


class DriverRequest(Frozen):
    """The driver."""

    branch: BranchText | None = Field(
        default=None,
        description="Driver branch. None: the long-term branch, or what the distribution's archive has.",
    )
    version: DriverText | None = Field(default=None, description="Exact version. None: the branch's newest.")


class ToolkitVersions(Frozen):
    """Versions of the container toolkit's four packages; they work only at the same version."""

    nvidia_container_toolkit: VersionText
    nvidia_container_toolkit_base: VersionText
    libnvidia_container_tools: VersionText
    libnvidia_container1: VersionText

    def distinct(self) -> list[str]:
        """The distinct versions."""
        return sorted(set(self.model_dump().values()))


class GpuStack(Frozen):
    """The driver stack of GPU nodes; `rackwright lock` resolves it to exact versions."""

    source: Literal["nvidia", "distribution", "mirror"] = Field(
        default="nvidia",
        description="nvidia: NVIDIA's repositories; distribution: the OS archive; mirror: the site's mirror.",
    )
    package_index: tuple[str, ...] = Field(
        default=(),
        description="`Packages` files, or repomd.xml or primary.xml of EL repositories (also .gz, .xz), of the "
        "driver's source and of the OS archive: URLs, or paths relative to the cluster file. With them the lock has "
        "exact revisions and hashes; it lists those that are missing.",
    )
    driver: DriverRequest = DriverRequest()
    modules: Literal["auto", "open", "proprietary"] = Field(
        default="auto", description="Kernel modules. auto: open from Turing on, proprietary on older GPUs."
    )
    cuda: CudaText | None = Field(
        default=None,
        description="CUDA toolkit on the nodes; `none`: no toolkit. Default: the newest released with the driver.",
    )
    dcgm: VersionOrNone | None = Field(default=None, description="Version of DCGM 4.")
    container_toolkit: VersionOrNone | ToolkitVersions | None = Field(
        default=None, description="Version of all four container toolkit packages; `none`: not installed."
    )
    nccl: VersionOrNone | None = None
    imex: bool | None = Field(
        default=None, description="Install IMEX. None: if the SKU's NVLink domain spans nodes."
    )
    ofed: Literal["inbox", "doca"] = Field(default="inbox", description="Source of the RDMA drivers.")
    doca: VersionText | None = Field(default=None, description="DOCA-Host release, with `ofed: doca`.")
    kernel: str | None = Field(
        default=None,
        min_length=3,
        description="Kernel release as `uname -r` prints it, e.g. `6.8.0-139-generic` or `5.14.0-687.46.1.el9_8`. None: the "
        "newest of the index, or of the shipped table, that the driver is not known to fail on.",
    )
    secure_boot: bool = Field(default=False, description="Whether the nodes boot with Secure Boot.")
    mok_enrolled: bool = Field(
        default=False, description="Whether the site's module-signing key (MOK) is enrolled on the nodes."
    )
    security: Literal["enforce", "warn", "ignore"] = Field(
        default="warn", description="How to treat versions below the minimum-security table."
    )
