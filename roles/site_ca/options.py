"""Options of the site_ca role."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Literal, Self

from cryptography import x509
from pydantic import Field, model_validator

from rackwright.boundary import Refused
from rackwright.certificates.authority import SigningKey, ca_problem, given_key, own_certificate
from rackwright.certificates.issuer import Issuer, KeyKind
from rackwright.certificates.read import certificates_in, is_ca, pem
from rackwright.errors import SecretsError
from rackwright.model.cluster import Cluster
from rackwright.model.options import RoleOptions
from rackwright.model.services import IssuesCertificates
from rackwright.model.text import mistake

_FILE_MAX = 1 << 20


class SiteCaOptions(RoleOptions, IssuesCertificates):
    """The site's certificate authority, and trust in it on every node."""

    secrets: ClassVar[tuple[str, ...]] = ("site_ca_key",)
    key_secret: ClassVar[str] = "site_ca_key"
    trust_file: ClassVar[str] = "/etc/rackwright-ca.crt"

    authority: Literal["own", "given"] = Field(
        default="own",
        description="`own`: its key is generated and kept in the secrets store. `given`: a CA of the site, e.g. an "
        "intermediate one; `certificate` names its file, and its key is put into the store as site_ca_key.",
    )
    certificate: Path | None = Field(
        default=None, description="`given`: the CA's certificate, PEM, beside the cluster file."
    )
    organization: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="`own`: organization in the CA's name. None: the cluster's name. Another one makes another CA to "
        "programs, and every certificate is issued again.",
    )
    ca_days: int = Field(
        default=3650,
        ge=30,
        le=9000,
        description="`own`: days that the CA's certificate is valid, from the day its key was generated. A larger "
        "number extends it with the same key.",
    )
    days: int = Field(
        default=90,
        ge=2,
        le=825,
        description="Days that a service's certificate is valid (90 is what public CAs issue).",
    )
    renew_before_days: int = Field(
        default=30,
        ge=1,
        description="A certificate that expires within these days is renewed by the next apply; verify warns until "
        "then, and drift reports it.",
    )
    key: KeyKind = Field(
        default="ecdsa-p256",
        description="Keys of services. rsa-3072 for clients that know no elliptic curves; takes effect with the next "
        "renewal.",
    )
    extra_trust: tuple[Path, ...] = Field(
        default=(),
        description="Certificates of further CAs that every node trusts, PEM, beside the cluster file, one in each.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.authority == "given" and self.certificate is None:
            raise mistake("A CA of the site needs its certificate.", "e.g. `certificate: site-ca.pem`")
        if self.authority == "own" and self.certificate is not None:
            raise mistake(
                "`certificate` is for a CA of the site's own; rackwright derives that of an own CA from its key.",
                "declare `authority: given`, or leave `certificate` out",
            )
        if self.authority == "given" and self.organization is not None:
            raise mistake("The name of a given CA is in its certificate.", "leave `organization` out")
        if self.renew_before_days >= self.days:
            raise mistake(
                f"Certificates of {self.days} days that are renewed {self.renew_before_days} days before their end "
                "would be renewed by every apply.",
                f"e.g. `renew_before_days: {max(1, self.days // 3)}`",
            )
        return self

    @property
    def supplied_secrets(self) -> tuple[str, ...]:
        """The key of a given CA."""
        return self.secrets if self.authority == "given" else ()

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Several CAs; files that cannot be read, or hold something else than the certificate of a CA."""
        for node in cluster.nodes:
            other = node.offers(SiteCaOptions)
            if other is not None and other._identity != self._identity:
                yield (
                    "",
                    f"{node.name} would have a different CA than nodes with these options, and trust none of their certificates.",
                    "declare authority, certificate, organization, ca_days and extra_trust once, for all nodes",
                )
                break
        if self.certificate is not None:
            yield from _file_problems(cluster, self.certificate, "certificate", signs=True)
        for index, path in enumerate(self.extra_trust):
            yield from _file_problems(cluster, path, f"extra_trust[{index}]", signs=False)

    def issuer(self, cluster: Cluster, secret: str) -> Issuer:
        """The CA with its policy; SecretsError where the secret is not its key, or it has expired."""
        key, certificate = self._authority(cluster, secret)
        wrong = ca_problem(certificate, datetime.now(UTC))
        if wrong is not None:
            raise SecretsError(
                f"The certificate of the site's CA {wrong}: nothing can be issued.",
                hint="raise `roles.site_ca.ca_days`"
                if self.authority == "own"
                else f"replace {self.certificate} by the CA's new certificate",
            )
        return self._issuer(cluster, key, certificate)

    def even_expired(self, cluster: Cluster, secret: str) -> Issuer:
        """As `issuer`, regardless of the CA's own dates: to judge what a node has."""
        return self._issuer(cluster, *self._authority(cluster, secret))

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.authority, self.certificate, self.organization, self.ca_days, self.extra_trust

    def _issuer(self, cluster: Cluster, key: SigningKey, certificate: x509.Certificate) -> Issuer:
        trusted = "".join([pem(certificate), *self.extra(cluster)])
        return Issuer(key, certificate, trusted, self.days, self.renew_before_days, self.key)

    def _authority(self, cluster: Cluster, secret: str) -> tuple[SigningKey, x509.Certificate]:
        if self.certificate is not None:
            given = _read(cluster, self.certificate)
            return given_key(secret, given), given
        return own_certificate(
            secret,
            name=f"{cluster.name} site CA",
            organization=self.organization or cluster.name,
            days=self.ca_days,
        )

    def extra(self, cluster: Cluster) -> list[str]:
        """The certificates of `extra_trust`, PEM."""
        return [pem(_read(cluster, path)) for path in self.extra_trust]


def _read(cluster: Cluster, path: Path) -> x509.Certificate:
    """The one certificate of a file beside the cluster file; OSError, or Refused where it is something else."""
    file = cluster.path.parent / path
    with file.open("rb") as stream:
        found = certificates_in(stream.read(_FILE_MAX + 1).decode("ascii", "replace"), _FILE_MAX)
    if len(found) != 1:
        raise Refused(f"it holds {len(found)} certificates")
    return found[0]


def _file_problems(
    cluster: Cluster, path: Path, where: str, *, signs: bool
) -> Iterable[tuple[str, str, str | None]]:
    try:
        found = _read(cluster, path)
    except OSError as error:
        why = (error.strerror or "it cannot be opened").lower()
        yield where, f"The certificate {path} cannot be read: {why}.", "it is beside the cluster file"
        return
    except Refused as error:
        yield (
            where,
            f"{path} is not the certificate of one CA: {error}.",
            "give it alone, as PEM, without its key",
        )
        return
    wrong = ca_problem(found, datetime.now(UTC)) if signs or not is_ca(found) else None
    if wrong is not None:
        yield where, f"The certificate {path} {wrong}.", "give the certificate of the CA that signs"
