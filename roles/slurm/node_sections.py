"""Parts of the slurm section about nodes: their features and weights, what a GPU costs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen

FeatureName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")]


class NodeSettings(Frozen):
    """What the workers of one NodeSet have beyond their hardware."""

    features: tuple[FeatureName, ...] = Field(
        default=(), description="Feature=, for `--constraint`; added to the node's SKU and `rack-NAME`."
    )
    weight: int | None = Field(
        default=None,
        ge=1,
        le=65533,
        description="Weight=: jobs get the lightest nodes that fit. None: 1, plus the number of GPUs, so that "
        "jobs without GPUs leave GPU nodes free while others are.",
    )


class Billing(Frozen):
    """What jobs are billed in partitions with GPUs that declare no `tres_billing_weights`."""

    gpu: int = Field(
        default=100,
        ge=1,
        le=1_000_000,
        description="Billing units of one whole GPU; a CPU of a partition without GPUs is 1 (Slurm's default). "
        "Billing is a whole number, so a unit of 1 would bill small shares of a node as nothing.",
    )
    by: Literal["largest", "sum"] | None = Field(
        default=None,
        description="largest: a job is billed its largest share of a node (PriorityFlags=MAX_TRES), so that a "
        "whole node is billed as its GPUs and half its memory as half of them. sum: Slurm's default, CPUs plus "
        "GPUs. None: largest, but sum where a partition declares weights, which were written for it.",
    )
