"""Options of the accounts role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from rackwright.model.logins import AddsLogins
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.strings import NodePath, SecretName
from rackwright.model.text import mistake
from rackwright.roles.accounts.strings import (
    Attribute,
    Base,
    DirectoryGroup,
    DirectoryUser,
    DistinguishedName,
    Filter,
    HomeTemplate,
    ServerUri,
)

if TYPE_CHECKING:  # the model imports rackwright.model.options, so a run-time import would be a circle
    from rackwright.model.cluster import Cluster

SUDOERS = "/etc/sudoers.d/91-rackwright-directory"
SSHD_CONF = "/etc/ssh/sshd_config.d/10-rackwright-directory.conf"
FIRST_PERSON = 1000
"""Lowest uid of an ordinary user on every distribution: login.defs(5), UID_MIN."""


class Bind(Frozen):
    """The login with which nodes read the directory. Its password is in the secrets store, never in the cluster file."""

    dn: DistinguishedName = Field(
        description="DN to bind as, e.g. `cn=reader,dc=example,dc=com`: an account without any other rights."
    )
    stored_as: SecretName = Field(
        description="Name of the password in the secrets store, e.g. `directory_reader`: put it there with `rackwright "
        "secrets put`. It is never generated. Every node has a copy that only root can read."
    )


class AccountsOptions(RoleOptions, AddsLogins):
    """A directory of users and groups, and what its users may do on the nodes."""

    servers: tuple[ServerUri, ...] = Field(
        min_length=1,
        max_length=8,
        description="Servers in the order in which they are tried, `ldaps://HOST[:PORT]` or `ldap://HOST[:PORT]`; all "
        "with the same scheme. With `ldap`, StartTLS encrypts the connection before anything is sent.",
    )
    base: Base = Field(description="Where searches begin, e.g. `dc=example,dc=com`.")
    user_base: Base | None = Field(default=None, description="Where users are. None: below `base`.")
    group_base: Base | None = Field(default=None, description="Where groups are. None: below `base`.")
    kind: Literal["rfc2307", "rfc2307bis", "ad"] = Field(
        default="rfc2307",
        description="How groups name their members: `rfc2307` by name (memberUid), `rfc2307bis` by DN (member; FreeIPA "
        "and most of today's directories), `ad` Active Directory's schema.",
    )
    numbers: Literal["directory", "sid"] = Field(
        default="directory",
        description="`directory`: uidNumber and gidNumber. `sid`: computed from Windows' SIDs, which gives every node "
        "the same numbers; with `kind: ad` only.",
    )
    bind: Bind | None = Field(
        default=None, description="None: nodes read anonymously, and so can everyone else."
    )
    ca_file: Path | None = Field(
        default=None,
        description="Certificate of the CA that signed the servers', PEM, beside the cluster file. None: the site's CA "
        "and its `extra_trust` (role site_ca), unless `public_ca`.",
    )
    public_ca: bool = Field(
        default=False,
        description="The servers' certificates are signed by a CA that the operating system trusts.",
    )

    allowed_groups: tuple[DirectoryGroup, ...] = Field(
        default=(),
        description="Groups of the directory whose members may log in. Membership alone decides: locked and expired "
        "accounts still log in with their key; `access_filter` with `expiry` refuses these.",
    )
    access_filter: Filter | None = Field(
        default=None,
        description="An LDAP filter that a user has to match to log in, e.g. "
        "`(memberOf=cn=hpc,ou=groups,dc=example,dc=com)`.",
    )
    expiry: Literal["shadow", "ad", "rhds", "ipa", "389ds"] | None = Field(
        default=None,
        description="With `access_filter`: refuse accounts that the directory marks as expired or locked, by these "
        "attributes (sssd-ldap(5), ldap_account_expire_policy).",
    )
    everyone: bool = Field(default=False, description="Every user of the directory may log in.")
    sudo_groups: tuple[DirectoryGroup, ...] = Field(
        default=(),
        description="Groups of the directory whose members may become root; without a password, as there are none. "
        "They cannot log in host-based, nor with keys in their homes, which root of another node may have written.",
    )

    min_id: int = Field(
        default=10_000,
        ge=FIRST_PERSON,
        le=2_147_483_647,
        description="Smallest uid and gid in the directory; nodes ignore entries with other numbers. Declared users must "
        "be outside the range.",
    )
    max_id: int = Field(default=2_147_483_647, ge=FIRST_PERSON, le=2_147_483_647, description="Largest one.")
    home: HomeTemplate | None = Field(
        default="/home/%u",
        description="Home directories; %u is the user name, %U the uid, %l the first letter. None: as the directory "
        "has them.",
    )
    make_home: bool = Field(
        default=False,
        description="Make a missing home at login, from /etc/skel, for its user alone. For local homes, and for shared "
        "ones where root may write.",
    )
    shell: NodePath | None = Field(
        default=None, description="Login shell of all users. None: as the directory has it."
    )
    ssh_key_attribute: Attribute | None = Field(
        default="sshPublicKey",
        description="Attribute with lines of authorized_keys. None: keys are not taken from the directory.",
    )

    cache_seconds: int = Field(
        default=5400,
        ge=60,
        le=604_800,
        description="How long an entry is valid before it is looked up again (entry_cache_timeout; 5400 is SSSD's own). While "
        "no server answers, older entries stay valid.",
    )
    cache_passwords: bool = Field(
        default=False,
        description="Keep hashes of accepted passwords, so that `su` and consoles accept them while no server "
        "answers (cache_credentials).",
    )
    deadline_seconds: int = Field(
        default=8,
        ge=2,
        le=60,
        description="How long servers that do not answer may delay a lookup in total; after that the cache answers at "
        "once. Split into one share more than there are servers, at least a second each.",
    )
    retry_seconds: int = Field(
        default=60,
        ge=10,
        le=3600,
        description="How long until servers that did not answer are retried; at most four times as long after several "
        "attempts (offline_timeout, offline_timeout_max).",
    )
    probe_user: DirectoryUser | None = Field(
        default=None, description="A user that `verify` looks up, e.g. an account of the operators."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len({uri.partition(":")[0] for uri in self.servers}) > 1:
            raise mistake(
                "The servers use both schemes, ldap and ldaps.", "write all of them as `ldaps://HOST`"
            )
        if len(set(self.servers)) < len(self.servers):
            raise mistake("A server is listed more than once.", "remove it")
        if self.ca_file is not None and self.public_ca:
            raise mistake("`ca_file` and `public_ca` exclude each other.", "leave one of them out")
        ways = [bool(self.allowed_groups), self.access_filter is not None, self.everyone]
        if sum(ways) != 1:
            raise mistake(
                "Who may log in is not declared."
                if not any(ways)
                else "Of `allowed_groups`, `access_filter` and `everyone` only one can be declared.",
                "e.g. `allowed_groups: [hpc-users]`",
            )
        if self.expiry is not None and self.access_filter is None:
            raise mistake("`expiry` works only with `access_filter`.", "e.g. `access_filter: (uid=*)`")
        if self.numbers == "sid" and self.kind != "ad":
            raise mistake("Only Active Directory has SIDs.", "declare `kind: ad`, or leave `numbers` out")
        if self.max_id < self.min_id:
            raise mistake(f"`max_id` {self.max_id} is below `min_id` {self.min_id}.", "swap them")
        if self.deadline_seconds <= len(self.servers):
            raise mistake(
                f"{self.deadline_seconds} s is too short for {len(self.servers)} servers, each of which takes a second.",
                f"e.g. `deadline_seconds: {2 * (len(self.servers) + 1)}`",
            )
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The password of the login."""
        return () if self.bind is None else (self.bind.stored_as,)

    @property
    def server_seconds(self) -> int:
        """What one server may take: a request on an open connection runs out first, then each server is tried."""
        return self.deadline_seconds // (len(self.servers) + 1)

    @property
    def start_tls(self) -> bool:
        """Whether connections begin in the clear and are encrypted before any request."""
        return self.servers[0].startswith("ldap:")

    @property
    def added_login_files(self) -> tuple[str, ...]:
        """What the deploy writes whole, or removes."""
        return (SUDOERS, SSHD_CONF)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What users and their numbers follow from: cached entries of another directory are wrong."""
        names = ("base", "user_base", "group_base", "kind", "numbers", "min_id", "max_id")
        return {name: getattr(self, name) for name in names}

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Numbers of declared users, certificates, and nodes with another directory."""
        from rackwright.roles.accounts.problems import problems_of

        return problems_of(self, cluster)

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Administrators who cannot log in, and what anonymous reads mean."""
        from rackwright.roles.accounts.problems import warnings_of

        return warnings_of(self, cluster)
