"""A site's options for its health checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from rackwright.documents.nearest import suggest
from rackwright.health.judge import all_checks
from rackwright.health.limits import LIMITS
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import InterfaceName, KernelRelease, UnitName, Version
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole

CHECKS = tuple(check.id for check in all_checks())


class RequiredMount(Frozen):
    """A filesystem that must be mounted."""

    target: str = Field(pattern=r"^/")
    source: str | None = None
    type: str | None = None
    writable: bool = True


class DeclaredFirmware(Frozen):
    """Firmware versions; devices without a declared version are only compared with each other."""

    bios: str | None = None
    gpu_vbios: str | None = None
    nic: dict[str, str] = Field(default_factory=dict, description="Version by board id, e.g. MT_0000000838.")
    nvme: dict[str, str] = Field(default_factory=dict, description="Version by drive model.")


class HealthOptions(RoleOptions):
    """Settings beyond the node's declaration, thresholds, and checks to switch off."""

    applies_to: ClassVar[frozenset[NodeRole]] = frozenset(NodeRole)
    moved: ClassVar[Mapping[str, str]] = {"acs": "roles.kernel.acs"}

    limits: dict[str, float] = Field(
        default_factory=dict, description="Thresholds that replace the defaults, by name."
    )
    disabled: dict[str, str] = Field(
        default_factory=dict, description="Checks to switch off: name and reason. Shown as DISABLED."
    )
    services: tuple[UnitName, ...] = Field(default=(), description="Additional units that must be active.")
    mounts: tuple[RequiredMount, ...] = Field(default=(), description="Filesystems besides /.")
    bonds: dict[InterfaceName, tuple[InterfaceName, ...]] = Field(
        default_factory=dict, description="Members by bond."
    )
    arrays: tuple[InterfaceName, ...] = Field(default=(), description="md arrays, e.g. md0.")
    compute_mode: Literal["Default", "Exclusive_Process", "Prohibited"] = "Default"
    driver_version: Version | None = Field(
        default=None, description="The exact driver version; the lock sets it."
    )
    driver_open: bool | None = None
    hold_packages: bool = True
    kernel: KernelRelease | None = Field(
        default=None, description="The exact kernel release; the lock sets it."
    )
    kernel_arguments: tuple[str, ...] = ()
    pkeys: tuple[str, ...] = Field(default=(), description="Partition keys every InfiniBand port must have.")
    firmware: DeclaredFirmware = DeclaredFirmware()

    @field_validator("limits")
    @classmethod
    def _known_limits(cls, limits: dict[str, float]) -> dict[str, float]:
        for name in limits:
            if name not in LIMITS:
                raise mistake(f"Unknown threshold {name}.", suggest(name, LIMITS, what="limits"))
        return limits

    @field_validator("disabled")
    @classmethod
    def _known_checks(cls, disabled: dict[str, str]) -> dict[str, str]:
        for name, reason in disabled.items():
            if name not in CHECKS:
                raise mistake(f"There is no health check {name}.", suggest(name, CHECKS, what="checks"))
            if len(reason.strip()) < 8:
                raise mistake(f"{name} is switched off without a reason; give a short one.")
        return disabled

    @field_validator("pkeys")
    @classmethod
    def _are_keys(cls, pkeys: tuple[str, ...]) -> tuple[str, ...]:
        for key in pkeys:
            try:
                int(key, 16)
            except ValueError:
                raise mistake(f"{key} is not a partition key; write it like 0x8001.") from None
        return pkeys
