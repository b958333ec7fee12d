"""The grafana role: options, settings, data sources and dashboards. No Grafana was to be had: no check ran against one."""

from __future__ import annotations

import configparser
import json
import tomllib

import pytest
import yaml

from rackwright.model.logs import KeepsLogs, LogStore
from rackwright.model.monitoring import RoutesAlerts
from rackwright.model.options import RoleOptions
from rackwright.osfamily.known import os_release
from rackwright.roles.grafana import texts
from rackwright.roles.grafana.options import FOLDER, GrafanaOptions
from rackwright.roles.node_exporter.options import NodeExporterOptions
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.unit.roles.container_site import sentences
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.sites import expected, head, site, worker


class Around(RoleOptions, RoutesAlerts, KeepsLogs):
    """An Alertmanager and a Loki."""

    drill_port: int | None = None
    kind: str = "loki"

    def runs_on(self, node):
        return node.primary

    def alerts_address(self, cluster, node):
        return "10.9.0.10:9093"

    def log_store(self, cluster):
        return LogStore(self.kind, "head1", {"url": "https://10.9.0.10:3100"}, 30, 90)


OIDC = {
    "client_id": "grafana",
    "auth_url": "https://id.example.com/auth",
    "token_url": "https://id.example.com/token",
    "api_url": "https://id.example.com/userinfo",
    "admins": ["hpc-admins"],
    "viewers": ["operators", "helpdesk"],
}
LDAP = {
    "hosts": ["ldap1.example.com", "ldap2.example.com"],
    "bind_dn": "cn=grafana,dc=example,dc=com",
    "search_base": "ou=people,dc=example,dc=com",
    "admins": ["cn=hpc-admins,ou=groups,dc=example,dc=com"],
    "editors": ["cn=operators,ou=groups,dc=example,dc=com"],
}
ARCHIVE = {
    "url": "https://mirror.example.com/grafana",
    "key_url": "https://mirror.example.com/k",
    "fingerprint": "A" * 40,
}


def cluster(*, ca=True, around=True, prometheus=True, os=None, **given):
    roles = {"node_exporter": NodeExporterOptions(), "grafana": GrafanaOptions.model_validate(given)}
    roles |= {"prometheus": PrometheusOptions()} if prometheus else {}
    roles |= {"site_ca": SiteCaOptions()} if ca else {}
    roles |= {"around": Around()} if around else {}
    return site(roles, **({"os": os_release(os)} if os else {}))


def options(of):
    return head(of).options["grafana"]


SITE = cluster(
    oidc=OIDC, ldap=LDAP, external=True, hostname="grafana.example.com", archive=ARCHIVE, version="12.3.2"
)
PLAIN = cluster()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"oidc": {**OIDC, "admins": [], "viewers": []}}, "No user can log in: no group has a role."),
        (
            {"oidc": {**OIDC, "token_url": "http://id.example.com/token"}},
            "`token_url` is plain HTTP: anyone who reads the network traffic can log in.",
        ),
        (
            {"oidc": {**OIDC, "admins": ["a' || 'Admin"]}},
            "String should match pattern '^[A-Za-z0-9_/][A-Za-z0-9_ ./:@-]{0,127}$'",
        ),
        ({"ldap": {**LDAP, "admins": [], "editors": []}}, "No user can log in: no group has a role."),
        (
            {"ldap": {**LDAP, "search_filter": "(uid=ada)"}},
            "`search_filter` has no placeholder for the user name.",
        ),
        (
            {"ldap": {**LDAP, "search_base": 'dc=x"\nbind_dn="y'}},
            "String should match pattern '^[A-Za-z][A-Za-z0-9-]*=",
        ),
        ({"ldap": {**LDAP, "tls": "none"}}, "Input should be 'ldaps' or 'starttls'"),
        ({"admin": "a b"}, "String should match pattern '^[a-z_][a-z0-9_-]{0,30}$'"),
        ({"anonymous": True}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert sentence in errors_in(GrafanaOptions, given)[0]


@pytest.mark.parametrize(
    ("of", "problems"),
    [
        (SITE, []),
        (
            cluster(ca=False),
            [
                (
                    "",
                    "Grafana has no certificate: its users' passwords would cross the network in the clear.",
                    "add the role `site_ca: {}`, or declare it: `plain_http: true`",
                )
            ],
        ),
        (
            cluster(plain_http=True),
            [
                (
                    "plain_http",
                    "`plain_http` has no effect: the site CA gives Grafana a certificate.",
                    "leave `plain_http` out",
                )
            ],
        ),
        (
            cluster(prometheus=False),
            [
                (
                    "",
                    "No Prometheus is declared for Grafana to show.",
                    "add the role `prometheus: {}`",
                )
            ],
        ),
        (
            cluster(login_form=False),
            [
                (
                    "login_form",
                    "No user can log in: there is neither a login form nor single sign-on.",
                    "declare `oidc`",
                )
            ],
        ),
    ],
)
def test_problems(of, problems):
    assert sentences(of, "grafana", "head1") == problems


def test_the_library_is_missing(monkeypatch):
    monkeypatch.setattr("rackwright.roles.grafana.options.find_spec", lambda name: None)
    assert sentences(PLAIN, "grafana", "head1") == [
        (
            "",
            "The Python package grafana-foundation-sdk, which makes Grafana's dashboards, is missing here.",
            "pip install 'rackwright[dashboards]'",
        )
    ]


def test_settings():
    assert texts.settings_ini(SITE, head(SITE), options(SITE)) == expected("grafana/grafana.ini")
    assert texts.settings_ini(PLAIN, head(PLAIN), options(PLAIN)) == expected("grafana/plain.ini")
    assert texts.ldap_toml(options(SITE)) == expected("grafana/ldap.toml")
    assert texts.drop_in(head(SITE), options(SITE)) == expected("grafana/unit.conf")
    assert texts.datasources_yaml(SITE, head(SITE), options(SITE)) == expected("grafana/datasources.yaml")
    assert texts.providers_yaml() == expected("grafana/providers.yaml")


def read_ini(of):
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(texts.settings_ini(of, head(of), options(of)))
    return parser


@pytest.mark.parametrize("of", [SITE, PLAIN, cluster(ca=False, plain_http=True)])
def test_a_login_is_always_required(of):
    found = read_ini(of)
    assert found["auth.anonymous"]["enabled"] == "false"
    assert found["users"]["allow_sign_up"] == "false"
    assert found["users"]["allow_org_create"] == "false"
    assert found["auth.proxy"]["enabled"] == "false"
    assert found["auth.jwt"]["enabled"] == "false"
    assert found["public_dashboards"]["enabled"] == "false"
    assert found["snapshots"]["external_enabled"] == "false"


def test_tls():
    found = read_ini(SITE)
    assert (found["server"]["protocol"], found["security"]["cookie_secure"]) == ("https", "true")
    plain = read_ini(cluster(ca=False, plain_http=True))
    assert (plain["server"]["protocol"], plain["security"]["cookie_secure"]) == ("http", "false")
    assert "cert_file" not in plain["server"]


def test_only_groups_that_are_named_get_a_role():
    found = read_ini(SITE)["auth.generic_oauth"]
    assert found["role_attribute_path"] == (
        "contains(groups[*], 'hpc-admins') && 'Admin' || contains(groups[*], 'operators') && 'Viewer' || "
        "contains(groups[*], 'helpdesk') && 'Viewer'"
    )
    assert found["role_attribute_strict"] == "true", "a user without a role is refused"
    assert found["allow_assign_grafana_admin"] == "false"
    ldap = tomllib.loads(texts.ldap_toml(options(SITE)))["servers"][0]
    assert [(one["group_dn"], one["org_role"]) for one in ldap["group_mappings"]] == [
        ("cn=hpc-admins,ou=groups,dc=example,dc=com", "Admin"),
        ("cn=operators,ou=groups,dc=example,dc=com", "Editor"),
    ], "no `*`, which would let in everybody"
    assert ldap["ssl_skip_verify"] is False


@pytest.mark.parametrize(
    ("more", "port", "start_tls"),
    [({}, 636, False), ({"tls": "starttls"}, 389, True), ({"port": 1636}, 1636, False)],
)
def test_ldap_is_encrypted(more, port, start_tls):
    of = cluster(ldap={**LDAP, **more, "group_search_base": "ou=groups,dc=example,dc=com"})
    found = tomllib.loads(texts.ldap_toml(options(of)))["servers"][0]
    assert (found["port"], found["use_ssl"], found["start_tls"]) == (port, True, start_tls)
    assert found["group_search_filter_user_attribute"] == "uid"


def test_anyone_may_search_a_directory():
    of = cluster(ldap={**LDAP, "bind_dn": None})
    assert "bind_password" not in texts.ldap_toml(options(of))
    assert options(of).supplied_secrets == ()


def test_which_data_sources_there_are():
    def uids(of):
        return texts.source_uids(of, head(of), options(of))

    assert uids(SITE) == ("rackwright-prometheus", "rackwright-alertmanager", "rackwright-loki")
    assert uids(cluster(around=False)) == ("rackwright-prometheus",)
    journal = site({**dict(head(PLAIN).options), "around": Around(kind="journal")})
    assert uids(journal) == ("rackwright-prometheus", "rackwright-alertmanager")


def test_data_sources_without_a_ca():
    of = cluster(ca=False, plain_http=True)
    sources = yaml.safe_load(texts.datasources_yaml(of, head(of), options(of)))["datasources"]
    assert sources[0]["url"].startswith("http://")
    assert "tlsCACert" not in sources[0]["secureJsonData"]
    assert sources[2]["secureJsonData"] == {}


def test_dashboards_are_those_of_this_cluster():
    found = texts.dashboards(PLAIN)
    assert "Cluster/overview.json" in found
    assert "Jobs/job.json" not in found, "nothing reports jobs here"
    titles = [panel["title"] for panel in json.loads(found["Cluster/overview.json"])["panels"]]
    assert "CPU busy" in titles
    assert "GPU power" not in titles
    assert texts.dashboard_uids(PLAIN)["rackwright-overview"] == "Cluster"


def test_the_head_gets_it():
    plan = planned(SITE, head(SITE))
    assert content(plan, "/etc/grafana/grafana.ini") == expected("grafana/grafana.ini")
    assert content(plan, "/etc/grafana/ldap.toml") == expected("grafana/ldap.toml")
    assert any("grafana=12.3.2" in command for command in commands(plan, "Install Grafana"))
    assert "policy-rc.d" in commands(plan, "Install Grafana")[0], "it does not start with its own settings"
    assert any("mirror.example.com/grafana" in str(content(plan, path)) for path in paths(plan))


def paths(plan):
    return [change.target for operation in plan.operations for change in operation.changes]


def test_nothing_anywhere_else():
    assert not any("grafana" in path for path in paths(planned(SITE, worker(SITE))))


def test_secrets_stand_in_files_of_their_own():
    plan = planned(SITE, head(SITE))
    for name in (
        *("grafana_admin_password", "grafana_secret_key", "metrics_password"),
        *("grafana_oidc_secret", "grafana_ldap_password"),
    ):
        path = f"{FOLDER}/{name}"
        assert content(plan, path) == f"(secret {name})"
        others = [one for one in paths(plan) if one.startswith("/etc/grafana") and one != path]
        assert not any(f"(secret {name})" in str(content(plan, one)) for one in others)
    for operation in plan.operations:
        assert not any("(secret" in command for command in operation.commands)
        assert not any("(secret grafana" in change.after for change in operation.changes if change.after)


def test_which_secrets_the_site_supplies():
    assert options(SITE).supplied_secrets == ("grafana_oidc_secret", "grafana_ldap_password")
    assert options(PLAIN).supplied_secrets == ()


def test_who_reaches_it():
    (listener,) = options(PLAIN).listeners(head(PLAIN))
    assert {purpose.value for purpose in listener.purposes} == {"management"}
    (listener,) = options(SITE).listeners(head(SITE))
    assert {purpose.value for purpose in listener.purposes} == {"management", "external"}


def test_its_certificate_has_the_name_that_browsers_use():
    (certificate,) = options(SITE).certificates(SITE, head(SITE))
    assert certificate.names[0] == "grafana.example.com"
    assert "10.9.0.10" in certificate.names
    assert certificate.group == "grafana"


def test_prometheus_reads_it():
    (scrape,) = options(PLAIN).scrapes(PLAIN, head(PLAIN))
    assert (scrape.job, scrape.port, scrape.path, scrape.certified) == ("grafana", 3000, "/metrics", True)
    found = read_ini(PLAIN)["metrics"]
    assert found["basic_auth_username"] == "prometheus"
    assert found["basic_auth_password"] == f"$__file{{{FOLDER}/metrics_password}}"


@pytest.mark.parametrize("os", ["debian-12", "ubuntu-24.04", "rocky-9"])
def test_other_releases(os):
    of = cluster(os=os)
    assert sentences(of, "grafana", "head1") == []
    assert content(planned(of, head(of)), "/etc/grafana/grafana.ini")
