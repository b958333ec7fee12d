"""Options of the tuning role. None always means: chosen from the node's SKU, roles and platform."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from rackwright.model.hcas import LimitsLockedMemory
from rackwright.model.options import Frozen, RoleOptions

_KEY = re.compile(r"[a-z0-9_]+([./][A-Za-z0-9_-]+)+")
_SIZE = re.compile(r"[1-9][0-9]*[KMGT]")

_OF_BASE = ("net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding", "net.ipv6.conf.all.forwarding")

Limit = int | Literal["unlimited"]


class Limits(Frozen):
    """Soft and hard limits of every login session and batch step (pam_limits)."""

    memlock: Limit = Field(
        default="unlimited",
        description="KiB of locked memory; RDMA registration fails or falls back when it is low.",
    )
    stack: Limit = Field(default="unlimited", description="KiB of stack; Fortran codes need it.")
    nofile: int = Field(
        default=1048576, ge=1024, le=1048576, description="Open files; fs.nr_open's default is the end."
    )
    nproc: Limit | None = Field(
        default=None,
        description="Processes and threads of a user. None: unlimited, but as the distribution has it on "
        "nodes that are for logins only, where one user's runaway script affects everyone.",
    )


class Journal(Frozen):
    """Where the journal is kept and how large it may get."""

    max_use: str = Field(default="4G", description="SystemMaxUse: the journal's share of the disk.")
    keep_free: str = Field(default="1G", description="SystemKeepFree: what it leaves free for others.")
    rate_limit_seconds: int = Field(
        default=30, ge=0, description="RateLimitIntervalSec; 0 turns the limit off."
    )
    rate_limit_burst: int = Field(
        default=10000,
        ge=0,
        description="RateLimitBurst per service and interval: a flood of GPU or link errors must stay "
        "readable. 10000 in 30 s is systemd's own default, stated so that a distribution cannot lower it.",
    )

    @field_validator("max_use", "keep_free")
    @classmethod
    def _is_size(cls, size: str) -> str:
        if not _SIZE.fullmatch(size):
            raise ValueError(f"{size!r} is not a size such as '4G' or '512M'.")
        return size


class TuningOptions(RoleOptions, LimitsLockedMemory):
    """Kernel, limits, CPU and journal settings."""

    sysctl: dict[str, int | str] = Field(
        default_factory=dict,
        description="Kernel values on top of, or instead of, those chosen for the node.",
    )
    limits: Limits = Field(default=Limits(), description="Limits of login sessions.")
    daemon_memlock: Literal["infinity"] | int = Field(
        default="infinity",
        description="DefaultLimitMEMLOCK of system services, which pam_limits does not reach; bytes.",
    )
    transparent_hugepages: Literal["always", "madvise", "never"] = Field(
        default="madvise", description="Anonymous huge pages: programs that profit ask for them."
    )
    governor: Literal["performance", "schedutil", "ondemand", "powersave"] | None = Field(
        default=None, description="CPU frequency governor. None: performance."
    )
    idle_states: Literal["shallow", "moderate", "all"] | None = Field(
        default=None,
        description="How deep an idle core may sleep, which costs wake-up time. None: moderate (99 us, as "
        "tuned's accelerator-performance) on GPU workers, shallow (C1, as its latency-performance) on "
        "other workers, all elsewhere.",
    )
    swap: Literal["off", "keep"] | None = Field(
        default=None, description="None: off on workers, whose jobs must not swap; kept elsewhere."
    )
    journal: Journal = Field(default=Journal(), description="journald's caps.")

    @field_validator("sysctl")
    @classmethod
    def _are_kernel_values(cls, values: dict[str, int | str]) -> dict[str, int | str]:
        for key, value in values.items():
            if not _KEY.fullmatch(key):
                raise ValueError(f"{key!r} is not a sysctl key such as 'vm.swappiness'.")
            if key.replace("/", ".") in _OF_BASE:
                raise ValueError(f"{key} is declared as the option `forwarding` of the base role.")
            if isinstance(value, str) and not re.fullmatch(r"[A-Za-z0-9_./: -]+", value):
                raise ValueError(f"{value!r} is not a value for {key}: letters, digits, spaces and '_./:-'.")
        return values

    @property
    def locks_any_memory(self) -> bool:
        """Whether neither sessions nor services are limited."""
        return self.limits.memlock == "unlimited" and self.daemon_memlock == "infinity"
