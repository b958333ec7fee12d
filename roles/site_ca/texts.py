"""The certificates that a node trusts, as files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from rackwright.certificates.issuer import Issuer
from rackwright.certificates.read import pem

PREFIX = "rackwright-"
"""Of the names of our files in a node's trust store."""
OFFLINE = "(certificate of the site's CA)\n"


def anchors_of(issuer: Issuer, extra: Iterable[str]) -> dict[str, str]:
    """File name to certificate, of the CA and of further ones."""
    return anchors(pem(issuer.certificate), extra)


def anchors(ca: str, extra: Iterable[str]) -> dict[str, str]:
    """File name to certificate; a further one is named after its digest, so that their order means nothing."""
    further = {f"{PREFIX}extra-{hashlib.sha256(text.encode()).hexdigest()[:16]}.crt": text for text in extra}
    return {f"{PREFIX}site-ca.crt": ca, **further}
