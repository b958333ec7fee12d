"""Devices that are queried over SNMP, and their credentials."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import SecretName
from rackwright.model.text import mistake
from rackwright.roles.snmp_exporter.modules import KINDS

DeviceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]
"""As switches are called in a cluster file."""
ModuleName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]
SnmpUser = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")]
"""At most 32 characters (RFC 3414, usmUserName)."""


class Auth(Frozen):
    """Credentials of devices: a user with two passwords (SNMPv3), or a community in the clear (v2c)."""

    version: Literal[2, 3] = 3
    user: SnmpUser | None = Field(default=None, description="With version 3: the user, who may only read.")
    password: SecretName | None = Field(
        default=None,
        description="With version 3: name of the authentication password in the secrets store.",
    )
    priv_password: SecretName | None = Field(
        default=None, description="With version 3: name of the encryption password in the secrets store."
    )
    auth_protocol: Literal["SHA", "SHA224", "SHA256", "SHA384", "SHA512"] = "SHA256"
    priv_protocol: Literal["AES", "AES192", "AES256", "AES192C", "AES256C"] = Field(
        default="AES", description="`AES`: with 128 bits, the only one that a standard names (RFC 3826)."
    )
    community: SecretName | None = Field(
        default=None, description="With version 2: name of the community in the secrets store."
    )

    @model_validator(mode="after")
    def _fits_version(self) -> Self:
        third = (self.user, self.password, self.priv_password)
        if self.version == 3 and (None in third or self.community is not None):
            raise mistake(
                "SNMPv3 needs `user`, `password` and `priv_password`, and has no `community`.",
                "passwords are names of secrets, e.g. `password: snmp_password`",
            )
        if self.version == 2 and (self.community is None or third != (None, None, None)):
            raise mistake(
                "SNMPv2c needs `community`, and has neither a user nor passwords.",
                "e.g. `community: snmp_community`, the name of a secret",
            )
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of what it needs from the secrets store."""
        return tuple(one for one in (self.password, self.priv_password, self.community) if one is not None)


class Device(Frozen):
    """A device that is queried."""

    address: IPv4Address
    kind: Literal["pdu", "switch", "ups"] = "switch"
    auth: DeviceName = Field(description="Which of `auths`.")
    modules: tuple[ModuleName, ...] = Field(
        default=(),
        description="What is read: modules of rackwright or of `module_files`. Empty: system, if_mib and entity_sensor of "
        "a switch, system and ups_mib of a UPS.",
    )
    rack: DeviceName | None = Field(
        default=None, description="Rack that it is in or feeds: the label `rack`."
    )
    port: int = Field(default=161, ge=1, le=65535)

    @model_validator(mode="after")
    def _has_modules(self) -> Self:
        if not self.read:
            raise mistake(
                "PDUs have no common MIB: set the one to read in `modules`.",
                "one of apc_pdu, raritan_pdu, or one of `module_files`",
            )
        if len(set(self.modules)) != len(self.modules):
            raise mistake("A module is named twice.", "name each once")
        return self

    @property
    def read(self) -> tuple[str, ...]:
        """Modules that are read."""
        return self.modules or KINDS[self.kind]

    @property
    def target(self) -> str:
        """As snmp_exporter takes it."""
        return str(self.address) if self.port == 161 else f"{self.address}:{self.port}"
