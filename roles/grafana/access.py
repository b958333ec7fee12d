"""Who may log in besides the administrator: users of an OIDC provider or of an LDAP directory, by their groups."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl, SecretName
from rackwright.model.text import mistake

GroupName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_/][A-Za-z0-9_ ./:@-]{0,127}$")]
"""A group as a provider names it; quotes would end a JMESPath string."""
Dn = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]*=[^\"\\\n]{1,250}$")]
"""A distinguished name that needs no escaping in a TOML string."""
Filter = Annotated[str, StringConstraints(pattern=r"^\([^\"\\\n]{1,250}\)$")]
Claim = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Host = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$")]
Text = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,127}$")]
"""Text without special characters of .ini files."""
Attribute = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]

_NO_LOGIN = "No user can log in: no group has a role."
_EXAMPLE = "e.g. `admins: [hpc-admins]`"


class Oidc(Frozen):
    """Single sign-on with OpenID Connect."""

    name: Text = Field(default="Single sign-on", description="Label of the login button.")
    client_id: Text
    stored_as: SecretName = Field(
        default="grafana_oidc_secret", description="Name of the client's secret in the secrets store."
    )
    auth_url: HttpUrl = Field(description="The provider's authorization endpoint.")
    token_url: HttpUrl = Field(description="Its token endpoint.")
    api_url: HttpUrl = Field(description="Its userinfo endpoint.")
    scopes: tuple[Claim, ...] = Field(default=("openid", "profile", "email", "groups"), min_length=1)
    groups_claim: Claim = Field(default="groups", description="Claim with the list of the user's groups.")
    login_claim: Claim = Field(default="preferred_username", description="Claim with the user's name.")
    admins: tuple[GroupName, ...] = Field(default=(), description="Groups whose members administer Grafana.")
    editors: tuple[GroupName, ...] = Field(
        default=(), description="Groups whose members can make their own dashboards."
    )
    viewers: tuple[GroupName, ...] = Field(default=(), description="Groups whose members look at dashboards.")

    @model_validator(mode="after")
    def _grants_access(self) -> Self:
        if not (self.admins or self.editors or self.viewers):
            raise mistake(_NO_LOGIN, _EXAMPLE)
        for name in ("auth_url", "token_url", "api_url"):
            if not getattr(self, name).startswith("https://"):
                raise mistake(
                    f"`{name}` is plain HTTP: anyone who reads the network traffic can log in.",
                    "use its https URL",
                )
        return self

    @property
    def role_path(self) -> str:
        """JMESPath that names the role of a user, by the highest of their groups; nothing for all others."""
        rules = [
            f"contains({self.groups_claim}[*], '{group}') && '{role}'"
            for role, groups in (("Admin", self.admins), ("Editor", self.editors), ("Viewer", self.viewers))
            for group in groups
        ]
        return " || ".join(rules)


class Ldap(Frozen):
    """Logins of an LDAP directory."""

    hosts: tuple[Host, ...] = Field(min_length=1, description="Servers, asked in order.")
    port: int | None = Field(default=None, ge=1, le=65535, description="None: 636 with `ldaps`, else 389.")
    tls: Literal["ldaps", "starttls"] = Field(
        default="ldaps", description="Passwords never cross the network in the clear."
    )
    bind_dn: Dn | None = Field(default=None, description="DN to search as. None: anonymous search.")
    stored_as: SecretName = Field(
        default="grafana_ldap_password", description="Name of that user's password in the secrets store."
    )
    search_base: Dn = Field(description="Below it are the users.")
    search_filter: Filter = Field(default="(uid=%s)", description="Finds a user by login name.")
    group_search_base: Dn | None = Field(
        default=None, description="Below it are the groups, where users have no `memberOf`."
    )
    group_search_filter: Filter = "(&(objectClass=posixGroup)(memberUid=%s))"
    login_attribute: Attribute = "uid"
    mail_attribute: Attribute = "mail"
    admins: tuple[Dn, ...] = Field(default=(), description="Groups whose members administer Grafana.")
    editors: tuple[Dn, ...] = Field(
        default=(), description="Groups whose members can make their own dashboards."
    )
    viewers: tuple[Dn, ...] = Field(default=(), description="Groups whose members look at dashboards.")

    @model_validator(mode="after")
    def _grants_access(self) -> Self:
        if not (self.admins or self.editors or self.viewers):
            raise mistake(_NO_LOGIN, "e.g. `admins: ['cn=hpc-admins,ou=groups,dc=example,dc=com']`")
        if "%s" not in self.search_filter:
            raise mistake("`search_filter` has no placeholder for the user name.", "e.g. `(uid=%s)`")
        return self

    @property
    def roles(self) -> tuple[tuple[str, str], ...]:
        """(group, role), the highest first: the first that matches counts."""
        return (
            *((group, "Admin") for group in self.admins),
            *((group, "Editor") for group in self.editors),
            *((group, "Viewer") for group in self.viewers),
        )
