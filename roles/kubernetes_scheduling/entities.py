"""Accounts, users and QOS in the cluster file: fields of the slurm role that Kubernetes has an equivalent of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,39}$")]
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,99}$")]
GroupName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@ -]{0,99}$")]
Words = Annotated[str, StringConstraints(pattern=r'^[^|"\\\n]*$', max_length=200)]
Tres = dict[
    Annotated[str, StringConstraints(pattern=r"^(cpu|mem|gres/gpu(:[a-z0-9_-]+)?)$")],
    Annotated[int, Field(ge=0)],
]
"""cpu, mem in MiB, gres/gpu, and gres/gpu:<type> of one GPU type."""


class Limits(Frozen):
    """Limits of an account; what is not set is not limited."""

    grp_tres: Tres = Field(
        default_factory=dict,
        description='All pods together: {cpu: 512, mem: 4194304, "gres/gpu": 64}; mem is in MiB.',
    )


class Account(Frozen):
    """One account of the tree below `root`."""

    parent: Name = "root"
    description: Words | None = None
    fairshare: int = Field(
        default=1, ge=1, description="Weight among its siblings, with Kueue's fair sharing."
    )
    limits: Limits = Field(default_factory=Limits)
    qos: tuple[Name, ...] = Field(
        default=(), description="QOS that its pods may have. Empty: what the parent's may; at the top all."
    )


class User(Frozen):
    """One user."""

    default_account: Name
    accounts: tuple[Name, ...] = Field(default=(), description="Further accounts that the user may use.")
    admin: Literal["none", "operator", "administrator"] = Field(
        default="none",
        description="operator: may read all accounts; administrator: may change what is in them.",
    )


class Qos(Frozen):
    """One quality of service, which becomes a PriorityClass."""

    description: Words | None = None
    priority: int = Field(default=0, ge=0)
    preempt: tuple[Name, ...] = Field(
        default=(),
        description="QOS whose pods this one may preempt. Kubernetes preempts everything with a lower priority, or nothing.",
    )
