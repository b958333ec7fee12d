"""Options of the fabricmanager role: the keys of fabricmanager.cfg that a site decides.

Keys, values and defaults: Fabric Manager User Guide, "Fabric Manager Config Options"
(https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/), read 2026-11-21; the defaults also in
nixpkgs, nixos/modules/hardware/video/nvidia.nix, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from rackwright.lock.for_roles import Trouble, has_stack
from rackwright.lock.stack_options import StackOptions
from rackwright.model.cluster import Cluster, Node
from rackwright.model.sku import NvSwitch


class FabricmanagerOptions(StackOptions):
    """Fabric Manager where the SKU has NVSwitches on its board; nothing anywhere else."""

    role: ClassVar[str] = "fabricmanager"
    parts: ClassVar[tuple[str, ...]] = ("fabricmanager", "nvlsm")

    mode: Literal["bare-metal", "shared-nvswitch", "vgpu"] = Field(
        default="bare-metal", description="FABRIC_MODE 0, 1 or 2: who partitions the GPUs among guests."
    )
    resume_after_exit: bool = Field(
        default=False,
        description="FABRIC_MODE_RESTART: a restart resumes running partitions. Not for bare-metal.",
    )
    log_level: Literal["off", "critical", "error", "warning", "info"] = Field(
        default="info", description="LOG_LEVEL."
    )
    stay_on_failures: bool = Field(
        default=False,
        description="FM_STAY_RESIDENT_ON_FAILURES: stays running where it could not set up the fabric; CUDA "
        "fails there all the same, and the unit looks healthy.",
    )
    access_link_failure: Literal["drop-gpu", "drop-switch"] = Field(
        default="drop-gpu",
        description="ACCESS_LINK_FAILURE_MODE: a GPU's link to an NVSwitch is lost. drop-gpu: this GPU has no "
        "NVLink any more; drop-switch: this switch and its peer go, and all have less bandwidth.",
    )
    trunk_link_failure: Literal["exit", "drop-switch"] = Field(
        default="exit", description="TRUNK_LINK_FAILURE_MODE: a link between NVSwitches is lost."
    )
    nvswitch_failure: Literal["exit", "drop-switch"] = Field(
        default="exit", description="NVSWITCH_FAILURE_MODE: an NVSwitch fails or is excluded."
    )
    abort_jobs_on_exit: bool = Field(
        default=True, description="ABORT_CUDA_JOBS_ON_FM_EXIT: running CUDA jobs end when it stops."
    )

    @classmethod
    def needed_on(cls, node: Node) -> bool:
        """NVSwitches on the node's own board."""
        return has_stack(node) and node.sku.gpus is not None and node.sku.gpus.nvswitch is NvSwitch.NODE

    def runs_on(self, node: Node) -> bool:
        """On every node that can have it: where it is not needed, it is kept off."""
        return node.holds(*self.applies_to)

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """A role without NVSwitch nodes, or a setting without effect."""
        if not self.nodes(cluster):
            yield "", "No node of the role fabricmanager has NVSwitches on its board.", "remove the section"
        if self.resume_after_exit and self.mode == "bare-metal":
            yield "resume_after_exit", "On bare metal fabricmanager has no partitions to resume.", None
