"""Like rackwright.clusterfile.patterns, for the options of monitoring roles."""

from __future__ import annotations

MONITORING_PATTERNS: dict[str, tuple[str, str]] = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,15}$": (
        "Not a valid BMC user name: letters, digits, `.`, `_` and `-`, at most 16 characters.",
        "monitor",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$": (
        "Not a valid SNMPv3 user name: letters, digits, `.`, `_` and `-`, at most 32 characters.",
        "monitor",
    ),
    r"^[A-Za-z][A-Za-z0-9_]{0,62}$": ("Not a valid snmp_exporter module.", "if_mib"),
    r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$": (
        "Not a valid device name: lower-case letters, digits and inner hyphens, at most 40 characters.",
        "su1-leaf1",
    ),
    r"^[a-z0-9]{1,30}$": ("Not a valid FreeIPMI workaround flag.", "opensesspriv"),
    r"^[a-z][a-z0-9_-]{1,40}$": ("Not a valid node_exporter collector.", "wifi"),
    r"^DCGM_(FI|EXP)_[A-Z0-9_]{1,80}$": ("Not a valid DCGM field.", "DCGM_FI_DEV_FAN_SPEED"),
    r"^[0-9][A-Za-z0-9.+~:-]{0,60}$": ("Not a valid package version.", "4.8.3-1"),
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$": ("Not a valid time of day.", "22:00"),
    r"^-?[0-9]{1,2}(:-?[0-9]{1,2})?$": ("Not a valid day of the month or range of days.", "1:7"),
    r"^/[A-Za-z0-9._~/-]*$": ("Not a valid URL path.", "/metrics"),
    r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$": ("Not a valid host:port.", "10.0.0.200:9100"),
    r"^[a-z_][a-z0-9_]{0,62}$": (
        "Not a valid label name: lower-case letters, digits and `_`, at most 63 characters.",
        "room",
    ),
    r"^[A-Za-z][A-Za-z0-9_+/-]{1,63}$": ("Not a valid time zone.", "Europe/Berlin"),
    r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$": ("Not a valid date.", "2026-12-01"),
    r"^[#@][A-Za-z0-9._-]{1,80}$": ("Not a valid Slack channel or user.", "#gpu-alerts"),
    r"^[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,188}[A-Za-z0-9])?$": (
        "Not a valid e-mail address.",
        "ops@example.com",
    ),
    r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$": ("Not a valid host name.", "ldap1.example.com"),
    r"^[A-Za-z0-9][A-Za-z0-9 ._:/@-]{0,127}$": (
        "Not a valid text: letters, digits, spaces and `._:/@-`, at most 128 characters.",
        "GPU cluster",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9@._+-]{0,127}$": (
        "Not a valid login: letters, digits and `@._+-`, at most 128 characters.",
        "robot@example.com",
    ),
    r"^[A-Za-z0-9_/][A-Za-z0-9_ ./:@-]{0,127}$": (
        "Not a valid group name: letters, digits, spaces and `_./:@-`, at most 128 characters.",
        "/hpc/operators",
    ),
    r"^[A-Za-z][A-Za-z0-9-]*=[^\"\\\n]{1,250}$": (
        'Not a valid LDAP DN: it must not contain `"` or a backslash.',
        "ou=people,dc=example,dc=com",
    ),
    r"^[A-Za-z][A-Za-z0-9-]{0,63}$": ("Not a valid LDAP attribute.", "uid"),
    r"^[A-Za-z_][A-Za-z0-9_]{0,63}$": ("Not a valid OIDC claim.", "preferred_username"),
    r"^[a-z][a-z0-9]{0,30}$": (
        "Not a valid prefix: lower-case letters and digits, starting with a letter, at most 31 characters.",
        "cluster1",
    ),
    r"^\([^\"\\\n]{1,250}\)$": (
        'Not a valid LDAP filter: it must be in parentheses, without `"` or a backslash.',
        "(objectClass=person)",
    ),
}
"""Field pattern to (message, example)."""
