"""Cluster-wide settings that belong to no role."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationInfo, field_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl, Identifier, JumpHost, RegistryName, UserName

if TYPE_CHECKING:
    from rackwright.model.sku import Sku


class Ssh(Frozen):
    """How rackwright connects to nodes. Paths are absolute once resolved."""

    user: UserName = Field(description="Unprivileged login on every node; becomes root with sudo.")
    port: int = Field(default=22, ge=1, le=65535)
    key: Path | None = Field(
        default=None, description="Private key, relative to the cluster file. None: ssh agent."
    )
    known_hosts: Path = Field(
        default=Path("known_hosts"),
        description="known_hosts file with the nodes' host keys, relative to the cluster file; always checked.",
    )
    jump_host: JumpHost | None = Field(default=None, description="Jump host, `user@host[:port]`.")
    become: Literal["sudo", "none"] = "sudo"
    connect_timeout_seconds: int = Field(default=10, ge=1, le=300)
    command_timeout_seconds: int = Field(
        default=900,
        ge=10,
        le=86400,
        description="Time limit of each command that plan, drift and apply run on a node; the batch that reads its "
        "state has 120 s at most. Separate limits: checks of verify (60 s unless the check sets "
        "another), burnin (`burnin.timeout_seconds`), health and why (45 s), drain and resume (60 s) and the "
        "installed drift checker (330 s).",
    )
    time_factor: int = Field(
        default=1,
        ge=1,
        le=20,
        description="Multiplies the time limits of verify's checks and of the batch that reads a node's state: 1 for "
        "servers, 10 for virtual machines that a busy host emulates in software.",
    )


class Mirrors(Frozen):
    """Site mirrors, so that nodes need no route to the Internet. URLs without credentials."""

    apt_proxy: HttpUrl | None = Field(
        default=None, description="HTTP proxy for apt only, e.g. apt-cacher-ng."
    )
    apt: HttpUrl | None = Field(
        default=None, description="Base URL that replaces the distribution's archive."
    )
    apt_security: HttpUrl | None = Field(
        default=None, description="Base URL that replaces the security archive."
    )
    dnf: HttpUrl | None = Field(
        default=None, description="Base URL that replaces the distribution's repositories."
    )
    pypi: HttpUrl | None = Field(default=None, description="Index URL for pip.")
    containers: RegistryName | None = Field(default=None, description="Registry mirror, host[:port].")
    files: HttpUrl | None = Field(default=None, description="Base URL of plain files (tarballs, firmware).")


class Waves(Frozen):
    """Order in which apply handles the nodes. Without this section all nodes go at once and apply never stops early."""

    canary: int = Field(
        default=0,
        ge=0,
        description="Number of canary nodes, applied first and alone; heads are never canaries.",
    )
    size: int | str | None = Field(
        default=None,
        description="Nodes per wave: a number, a share such as `10%`, `rack` or `switch`. None: all remaining nodes.",
    )
    order: Literal["together", "heads-first", "workers-first"] = "together"
    stop_after: int | str | None = Field(
        default=None,
        description="Start no further wave after this number or share of failed nodes, e.g. `5%`.",
    )
    pause_seconds: int = Field(default=0, ge=0, le=86400, description="Pause between waves, in seconds.")
    drain: bool = Field(
        default=True,
        description="Drain a worker in the scheduler and wait for its jobs before a disruptive change.",
    )
    drain_deadline_seconds: int = Field(
        default=3600,
        ge=1,
        description="Wait at most this long for jobs; the worker is then skipped and reported.",
    )
    boot_timeout_seconds: int = Field(
        default=1800,
        ge=10,
        le=86400,
        description="Seconds from the reboot command to the end of the node's boot. The firmware of a GPU "
        "server tests its memory and devices for several minutes.",
    )

    @field_validator("size", "stop_after")
    @classmethod
    def _number_or_share(cls, value: int | str | None, info: ValidationInfo) -> int | str | None:
        if isinstance(value, str):
            share = value.removesuffix("%")
            words = ("rack", "switch") if info.field_name == "size" else ()
            if value not in words and not (
                value.endswith("%") and share.isdigit() and 1 <= int(share) <= 100
            ):
                forms = ("a number", "a share from `1%` to `100%`", *(f"`{word}`" for word in words))
                raise ValueError(f"must be {' or '.join(forms)}")
        elif value is not None and value < 1:
            raise ValueError("must be at least 1")
        return value


class Burnin(Frozen):
    """The burn-in of the workers, see docs/burnin.md."""

    profile: Literal["quick", "acceptance", "soak"] | None = Field(
        default=None,
        description="Default profile of `rackwright burnin`: `quick` (minutes: each node alone, then "
        "all-reduce at large sizes), `acceptance` (DCGM's diagnostic, GEMM, host copies, ports, every collective) or "
        "`soak` (hours). None: each node alone, then every collective.",
    )
    soak_hours: float = Field(
        default=24,
        gt=0,
        le=336,
        description="Hours of the profile `soak`; 24 to 72 are usual for a rack.",
    )
    engine: Literal["nccl-tests", "mpi"] | None = Field(
        default=None,
        description="None: nccl-tests if the workers' SKU has GPUs, else mpi. Through Ray: NCCL or gloo by the same choice.",
    )
    partition: Identifier | None = None
    min_bytes: int = Field(default=8, ge=8)
    max_bytes: int | None = Field(
        default=None,
        ge=8,
        description="None: 16 GiB for nccl-tests, 8 GiB for NCCL through Ray, 64 MiB between CPUs.",
    )
    iterations: int = Field(default=20, ge=1)
    floor_busbw_gbs: float | None = Field(
        default=None,
        gt=0,
        description="Minimum GB/s of all nodes together at the largest size. None: the SKU's floor; without one: UNKNOWN.",
    )
    floors_by_nodes: dict[int, float] = Field(
        default_factory=dict,
        description="Minimum GB/s at the largest size by number of nodes, e.g. `{1: 470, 2: 450, 64: 400}`; in between, "
        "interpolated in log2 of the nodes. Overrides the SKU's floors, also for nodes alone (1) and "
        "pairs (2).",
    )
    floor_source: str | None = Field(
        default=None, description="Source of floor_busbw_gbs and floors_by_nodes, with its date."
    )
    check_values: bool = Field(
        default=True,
        description="Whether nccl-tests checks every value (`-c 1`). False (`-c 0`) only measures time: larger sizes fit "
        "into GPU memory, but correctness is not checked.",
    )
    transport: str | None = Field(
        default=None, description="Transport that the log must prove, e.g. `NET/IB` or `NET/IB/GDRDMA`."
    )
    nccl_env: dict[str, str] = Field(default_factory=dict, description="NCCL_* environment of the jobs.")
    diag_level: int = Field(
        default=0,
        ge=0,
        le=4,
        description="Level of `dcgmi diag -r` on every node before the collectives; 0: none, or the catalogue's level in "
        "the profile `acceptance`. Needs the dcgm role.",
    )
    gemm_seconds: int = Field(
        default=0,
        ge=0,
        le=600,
        description="Seconds of matrix products on every GPU before the collectives, to find slow GPUs; 0: none, "
        "or 60 in the profiles `acceptance` and `soak`. Needs the dcgm role.",
    )
    timeout_seconds: int = Field(
        default=1800, ge=10, description="Time limit of each job, excluding its time in the queue."
    )

    def on_gpus(self, sku: Sku) -> bool:
        """Whether GPUs of a node of this SKU are measured, not its CPUs."""
        return sku.gpus is not None and self.engine != "mpi"

    @field_validator("floors_by_nodes")
    @classmethod
    def _numbers_of_nodes(cls, value: dict[int, float]) -> dict[int, float]:
        if any(nodes < 1 or floor <= 0 for nodes, floor in value.items()):
            raise ValueError("must map numbers of nodes to GB/s, both above 0, e.g. `{1: 470, 2: 450}`")
        return value
