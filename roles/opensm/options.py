"""Options of the opensm role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from rackwright.lock.for_roles import Trouble
from rackwright.model.cluster import Cluster, Node
from rackwright.model.hcas import RunsSubnetManager
from rackwright.model.interfaces import GoesFirst
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.ranges import RangeMistake, expand
from rackwright.model.strings import SecretName
from rackwright.model.text import mistake
from rackwright.roles.opensm import problems

DEFAULT_PKEY = 0x7FFF
FULL = 0x8000
"""Bit 15 of a P_Key: a full member."""
FIRST_PRIORITY = 15
"""The highest (opensm(8), --priority)."""

Guid = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{16}$")]
PartitionName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$")]
Membership = Literal["full", "limited"]
Engine = Literal["minhop", "updn", "dnup", "ftree", "lash", "dfsssp", "nue", "ar_ftree", "ar_updn"]


def _pkey(value: object) -> object:
    """`0x8001` and `0x0001` are one partition: bit 15 is the membership."""
    if isinstance(value, str):
        try:
            value = int(value, 16)
        except ValueError:
            raise mistake("Not a P_Key.", "e.g. `pkey: 0x0001`") from None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 0xFFFF or not value & 0x7FFF:
        raise mistake("Not a P_Key: 0x0001 to 0x7ffe, with or without bit 15.", "e.g. `pkey: 0x0001`")
    if value & 0x7FFF == DEFAULT_PKEY:
        raise mistake(
            "0x7fff is the partition `Default`, which every fabric has.", "set `default_membership` for it"
        )
    return value & 0x7FFF


class Partition(Frozen):
    """A partition of a subnet."""

    pkey: Annotated[int, BeforeValidator(_pkey)] = Field(description="0x0001 to 0x7ffe.")
    members: str = Field(
        default="all",
        description="`all`: every channel adapter of the subnet; or a NodeSet, e.g. `gpu[001-016]`.",
    )
    membership: Membership = Field(
        default="full", description="Of the members. Limited members reach full ones, and not each other."
    )
    limited: str | None = Field(default=None, description="NodeSet of further members, which are limited.")
    ipoib: bool = Field(default=False, description="Make the broadcast group that IPoIB needs.")
    mtu: Literal[256, 512, 1024, 2048, 4096] | None = Field(
        default=None,
        description="Of the broadcast group, and so of IPoIB on it; None: 2048, opensm's default "
        "(doc/partition-config.txt of opensm, read 2026-11-25).",
    )
    rate: Literal[10, 20, 40, 56, 100, 200, 300, 400] | None = Field(
        default=None,
        description="Gb/s of the broadcast group; ports that are slower cannot join. None: 10, opensm's default (same).",
    )

    @field_validator("members", "limited")
    @classmethod
    def _is_a_nodeset(cls, text: str | None) -> str | None:
        if text not in (None, "all"):
            try:
                expand(text or "")
            except RangeMistake as error:
                raise mistake(str(error), "e.g. `gpu[001-016]`, or `all`") from None
        return text

    @model_validator(mode="after")
    def _has_a_group(self) -> Partition:
        if not self.ipoib and (self.mtu is not None or self.rate is not None):
            raise mistake(
                "`mtu` and `rate` are those of IPoIB's broadcast group, which this partition lacks.",
                "ipoib: true",
            )
        return self


class Subnet(Frozen):
    """How a network's subnet managers run."""

    nodes: tuple[str, ...] = Field(
        min_length=1,
        max_length=4,
        description="Nodes that run one, the master first: its priority is 15, and one less for each further.",
    )
    device: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9_]{0,31}$",
        description="RDMA device they use. None: the one that the role `rdma` declares on the subnet.",
    )
    partitions: dict[PartitionName, Partition] = Field(default_factory=dict)
    default_membership: Membership = Field(
        default="full",
        description="Of all ports but the subnet managers' in the partition Default (0x7fff). `full` as opensm has it "
        "without a file; `limited` where partitions are to keep nodes apart.",
    )
    default_ipoib: bool = Field(default=True, description="IPoIB on the partition Default, as opensm has it.")
    default_mtu: Literal[256, 512, 1024, 2048, 4096] | None = Field(
        default=None, description="Of the partition Default's broadcast group, as a partition's `mtu`."
    )
    default_rate: Literal[10, 20, 40, 56, 100, 200, 300, 400] | None = Field(
        default=None, description="Of the partition Default's broadcast group, as a partition's `rate`."
    )
    guids: dict[str, tuple[Guid, ...]] = Field(
        default_factory=dict,
        description="Port GUIDs by node, e.g. `gpu001: [0x0c42a10300a1b2c3]`: of those that a partition names.",
    )
    routing: Literal["auto"] | Engine = Field(
        default="auto",
        description="Routing engine. auto: ftree where the fabric declares spines and every leaf has the same cables to "
        "each; updn where the uplinks differ; else minhop. ar_ftree and ar_updn are NVIDIA's own subnet manager's.",
    )
    poll_seconds: int = Field(
        default=10,
        ge=1,
        le=600,
        description="How often a standby asks for the master (sminfo_polling_timeout; 10 s is opensm's default, "
        "osm_base.h of opensm 3.3.23, read 2026-11-25).",
    )
    poll_retries: int = Field(
        default=4,
        ge=1,
        le=20,
        description="Unanswered questions after which a standby takes over (polling_retry_number; 4 is the default, same).",
    )
    sm_key: SecretName | None = Field(
        default=None,
        description="Secret with the SM key, 16 hexadecimal digits: subnet managers with another key are not trusted.",
    )
    m_key: SecretName | None = Field(
        default=None,
        description="Secret with the management key of all ports, 16 hexadecimal digits: who lacks it cannot change them.",
    )
    m_key_lease_seconds: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Required with `m_key`: after this time without a subnet manager ports give their key up; 0: never.",
    )

    @field_validator("nodes")
    @classmethod
    def _differ(cls, nodes: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(nodes)) != len(nodes):
            raise mistake("A node is listed twice.", "name each once, the master first")
        return nodes

    @model_validator(mode="after")
    def _is_consistent(self) -> Subnet:
        if (self.m_key is None) != (self.m_key_lease_seconds is None):
            raise mistake("`m_key` and `m_key_lease_seconds` are given together.", "m_key_lease_seconds: 60")
        if not self.default_ipoib and (self.default_mtu is not None or self.default_rate is not None):
            raise mistake(
                "`default_mtu` and `default_rate` are those of IPoIB on the partition Default, which is off.",
                "default_ipoib: true",
            )
        names: dict[int, str] = {}
        for name, partition in self.partitions.items():
            if names.setdefault(partition.pkey, name) != name:
                first = names[partition.pkey]
                raise mistake(
                    f"`{first}` and `{name}` have the same P_Key {partition.pkey:#06x}.", "another pkey"
                )
        return self

    def priority(self, node: str) -> int:
        """The SM priority of one of its nodes."""
        return FIRST_PRIORITY - self.nodes.index(node)


class OpensmOptions(GoesFirst, RunsSubnetManager, RoleOptions):
    """Subnet managers of InfiniBand networks, on the nodes that each names."""

    networks: dict[str, Subnet] = Field(
        min_length=1,
        description="By the name of the network, e.g. `fabric: {nodes: [head1, head2]}`.",
    )

    def runs_on(self, node: Node) -> bool:
        """On the nodes that a network names."""
        return super().runs_on(node) and any(node.name in subnet.nodes for subnet in self.networks.values())

    def goes_first(self, node: Node) -> bool:
        """No port of other nodes becomes active without it."""
        return True

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The keys: other subnet managers of the fabric have the same."""
        keys = [key for subnet in self.networks.values() for key in (subnet.sm_key, subnet.m_key)]
        return tuple(dict.fromkeys(key for key in keys if key is not None))

    def subnet_managers(self, network: str) -> tuple[str, ...]:
        """The nodes of a network, the master first."""
        return self.networks[network].nodes if network in self.networks else ()

    def pkeys(self, cluster: Cluster, node: Node, network: str) -> frozenset[int]:
        """As partitions.conf gives them to the node's ports."""
        subnet = self.networks[network]
        full = subnet.default_membership == "full" or node.name in subnet.nodes
        found = {DEFAULT_PKEY | (FULL if full else 0)}
        for partition in subnet.partitions.values():
            if partition.members == "all" or node.name in expand(partition.members):
                found.add(partition.pkey | (FULL if partition.membership == "full" else 0))
            elif partition.limited is not None and node.name in expand(partition.limited):
                found.add(partition.pkey)
        return frozenset(found)

    def problems(self, cluster: Cluster) -> Iterator[Trouble]:
        """Networks, nodes, partitions and routing that the cluster cannot have."""
        return problems.problems(self, cluster)
