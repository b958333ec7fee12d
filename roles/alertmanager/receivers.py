"""Where notifications go. Secrets are named here and kept in the secrets store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import HostPort, HttpUrl, SecretName
from rackwright.model.text import mistake

EmailAddress = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,188}[A-Za-z0-9])?$")
]
Channel = Annotated[str, StringConstraints(pattern=r"^[#@][A-Za-z0-9._-]{1,80}$")]
LoginName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}$")]
_RESOLVED = Field(default=True, description="Whether it is also notified when alerts resolve.")
_PROXY = Field(default=True, description="Reach it by the site's proxy, where the role `proxy` declares one.")


class Login(Frozen):
    """A login at a mail server or webhook."""

    user: LoginName
    stored_as: SecretName = Field(description="Name of the password in the secrets store.")


class Smtp(Frozen):
    """The mail server by which e-mail is sent."""

    server: HostPort = Field(
        description="host:port, e.g. `mail.example.com:587`. Port 465 speaks TLS at once."
    )
    sender: EmailAddress
    login: Login | None = Field(default=None, description="None: it takes mail from the head without one.")
    tls: bool = Field(default=True, description="Send nothing unless the server takes STARTTLS, or port 465.")

    @model_validator(mode="after")
    def _keeps_the_password(self) -> Self:
        if self.login is not None and not self.tls:
            raise mistake(
                "The password of the mail server would cross the network in the clear.", "`tls: true`"
            )
        return self


class Email(Frozen):
    """Addresses of one e-mail."""

    to: tuple[EmailAddress, ...] = Field(min_length=1)
    resolved: bool = _RESOLVED


class Slack(Frozen):
    """An incoming webhook of Slack or a compatible service, e.g. Mattermost."""

    url_stored_as: SecretName = Field(description="Name of its URL, which holds a key, in the secrets store.")
    channel: Channel | None = Field(default=None, description="None: the webhook's own.")
    resolved: bool = _RESOLVED
    proxy: bool = _PROXY


class Webhook(Frozen):
    """A URL that gets each notification as JSON."""

    url: HttpUrl | None = None
    url_stored_as: SecretName | None = Field(
        default=None, description="Name of its URL in the secrets store, where the URL holds a key."
    )
    login: Login | None = None
    bearer_stored_as: SecretName | None = Field(
        default=None, description="Name of a bearer token in the secrets store."
    )
    max_alerts: int = Field(default=0, ge=0, le=100_000, description="Alerts of one notification; 0: all.")
    resolved: bool = _RESOLVED
    proxy: bool = Field(default=False, description="Reach it by the site's proxy (role `proxy`).")

    @model_validator(mode="after")
    def _is_one_address(self) -> Self:
        if (self.url is None) == (self.url_stored_as is None):
            raise mistake(
                "A webhook has either `url` or `url_stored_as`.", "`url: https://hooks.example.com/gpu`"
            )
        if self.login is not None and self.bearer_stored_as is not None:
            raise mistake("A webhook has either `login` or `bearer_stored_as`.", "leave one of them out")
        return self

    @property
    def in_the_clear(self) -> bool:
        """Whether a password crosses the network unencrypted."""
        plain = self.url is not None and self.url.startswith("http://")
        return plain and (self.login is not None or self.bearer_stored_as is not None)


class Pagerduty(Frozen):
    """A service of PagerDuty."""

    key_stored_as: SecretName = Field(
        description="Name of its integration key (Events API v2) in the secrets store."
    )
    resolved: bool = _RESOLVED
    proxy: bool = _PROXY


class Receiver(Frozen):
    """All places that one notification goes to."""

    email: tuple[Email, ...] = ()
    slack: tuple[Slack, ...] = ()
    webhook: tuple[Webhook, ...] = ()
    pagerduty: tuple[Pagerduty, ...] = ()

    @model_validator(mode="after")
    def _goes_somewhere(self) -> Self:
        if not (self.email or self.slack or self.webhook or self.pagerduty):
            raise mistake("This receiver has no destination.", "e.g. `email: [{to: [ops@example.com]}]`")
        return self

    @property
    def secrets(self) -> Iterator[str]:
        """Names of all secrets that it reads."""
        for slack in self.slack:
            yield slack.url_stored_as
        for webhook in self.webhook:
            login = webhook.login.stored_as if webhook.login is not None else None
            yield from (name for name in (webhook.url_stored_as, login, webhook.bearer_stored_as) if name)
        for pagerduty in self.pagerduty:
            yield pagerduty.key_stored_as
