"""Applies the site_ca role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import certificates, files, packages
from rackwright.osfamily.names import names
from rackwright.roles.site_ca import texts
from rackwright.roles.site_ca.options import SiteCaOptions


@deploy("site_ca")
def site_ca(options: SiteCaOptions) -> None:
    """The tools, the file that container runtimes read, and the trust of all other programs."""
    site = site_of()
    packages.installed(name="Install openssl", packages=names(site.node.family, "certificates").packages)
    if site.offline:  # its certificate follows from a secret
        trusted, anchors = texts.OFFLINE, texts.anchors(texts.OFFLINE, options.extra(site.cluster))
    else:
        issuer = options.issuer(site.cluster, site.secret(options.key_secret).reveal())
        trusted, anchors = issuer.trusted, texts.anchors_of(issuer, options.extra(site.cluster))
    # its text stays out of plans, and new secrets of a lost store are refused, as with other secrets
    files.file(
        name="Write the site CA certificate",
        path=options.trust_file,
        content=trusted,
        sensitive=True,
    )
    certificates.trusted(name="Trust the site CA", certificates=anchors, prefix=texts.PREFIX)
