"""Options of the nvidia_container_toolkit role."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from rackwright.lock.stack_options import StackOptions

CONFIG = "/etc/nvidia-container-runtime/config.toml"
MODE_READ = f"sed -n '/^\\[nvidia-container-runtime\\]/,/^\\[/s/^ *mode *= *\"\\(.*\\)\"/\\1/p' {CONFIG}"
"""Shell: how nvidia-container-runtime gives devices."""


class NvidiaContainerToolkitOptions(StackOptions):
    """The toolkit's four packages at the locked version, and a CDI spec of the node's GPUs.

    What docker itself needs to know (`features.cdi` before 28.2) is the docker role's daemon.json.
    """

    role: ClassVar[str] = "nvidia_container_toolkit"
    parts: ClassVar[tuple[str, ...]] = ("container_toolkit",)

    mode: Literal["auto", "cdi", "legacy"] = Field(
        default="cdi",
        description="How nvidia-container-runtime gives devices, where an engine is configured to use it: by the CDI "
        "spec, by the old hook, or as it detects.",
    )
    containerd: Literal["off", "v2", "v3"] = Field(
        default="off",
        description="Write /etc/containerd/conf.d/99-nvidia.toml, a runtime `nvidia` for Kubernetes, as "
        "`nvidia-ctk runtime configure` does: v2 for containerd 1.7, v3 for 2.x. containerd's own file has to "
        "import conf.d. CDI needs none of it.",
    )
