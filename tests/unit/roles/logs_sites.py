"""Sites with central logs, one for each kind of store."""

from __future__ import annotations

from rackwright.roles.logs.options import LogsOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.sites import site

ARCHIVE = {
    "url": "https://mirror.example.com/vendor",
    "suite": "stable",
    "components": ["main"],
    "key_url": "https://mirror.example.com/vendor.key",
    "fingerprint": "0123456789ABCDEF0123456789ABCDEF01234567",
}
SEARCH = {
    "urls": ["https://search1.example.com:9200", "https://search2.example.com:9200"],
    "sends": {"user": "writer", "stored_as": "search_writer"},
    "manages": {"user": "manager", "stored_as": "search_manager"},
    "ca": "/etc/ssl/search-ca.crt",
}
STORES = {
    "journal": {"type": "journal"},
    "loki": {"type": "loki", "archive": ARCHIVE, "version": "3.5.7", "alloy_version": "1.11.3-1"},
    "elastic": {"type": "elastic", **SEARCH, "archive": ARCHIVE, "filebeat_version": "8.19.4"},
    "opensearch": {"type": "opensearch", **SEARCH},
}


def options(kind="journal", **changes) -> LogsOptions:
    """With that store."""
    return LogsOptions.model_validate({"store": STORES[kind], **changes})


def logs_site(kind="journal", *, ca=True, **changes):
    """head1, gpu1 and gpu2 with central logs and the site's CA."""
    roles = {"logs": options(kind, **changes)}
    return site({**roles, "site_ca": SiteCaOptions()} if ca else roles)


def secret(name):
    return f'{name} "of" the $tore\\'
