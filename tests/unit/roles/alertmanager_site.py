"""Sites of the tests of the alertmanager role: one with everything, one with nothing declared, and a pair."""

from __future__ import annotations

from typing import Any

from rackwright.model.cluster import Cluster
from rackwright.model.types import NodeRole
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.prometheus.options import PrometheusOptions
from rackwright.roles.proxy.options import ProxyOptions
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import DEBIAN_13, make_cluster, make_node
from tests.unit.roles.sites import NETWORKS, head, site

FULL: dict[str, Any] = {
    "smtp": {
        "server": "mail.example.com:587",
        "sender": "rackwright@example.com",
        "login": {"user": "rackwright", "stored_as": "smtp_password"},
    },
    "receivers": {
        "ops": {
            "email": [{"to": ["ops@example.com", "night@example.com"]}],
            "slack": [{"url_stored_as": "slack_url", "channel": "#gpu"}],
        },
        "oncall": {
            "pagerduty": [{"key_stored_as": "pagerduty_key", "proxy": False}],
            "webhook": [
                {
                    "url": "https://hooks.example.com/gpu",
                    "login": {"user": "rw", "stored_as": "hook_password"},
                    "proxy": True,
                },
                {
                    "url_stored_as": "hook_url",
                    "bearer_stored_as": "hook_token",
                    "max_alerts": 50,
                    "resolved": False,
                },
            ],
        },
        "dead-man": {"webhook": [{"url": "https://watch.example.com/rack", "resolved": False}]},
    },
    "critical": {"receiver": "oncall", "repeat_hours": 4},
    "warning": {"mute": ["nights"]},
    "info": {"receiver": "ops", "repeat_hours": 168},
    "routes": [
        {
            "match": {"alertname": "DiskFull"},
            "match_regex": {"node": 'gpu\\d+|"x'},
            "receiver": "ops",
            "further": True,
            "repeat_hours": 0.5,
        }
    ],
    "watchdog": "dead-man",
    "mute_times": {
        "nights": [
            {
                "weekdays": ["saturday", "sunday"],
                "times": [{"start": "22:00", "end": "24:00"}, {"start": "00:00", "end": "06:00"}],
                "timezone": "Europe/Berlin",
            },
            {"days_of_month": ["1:7", "-1"]},
        ]
    },
    "runbooks": "https://git.example.com/rackwright/",
    "drill_port": 9099,
}


def cluster(given: dict[str, Any], *, ca: bool = True, proxy: bool = False, **changes: Any) -> Cluster:
    """A head with Alertmanager and Prometheus, and two workers."""
    roles: dict[str, Any] = {
        "alertmanager": AlertmanagerOptions.model_validate(given),
        "prometheus": PrometheusOptions(plain_http=not ca),
        **({"site_ca": SiteCaOptions()} if ca else {}),
        **({"proxy": ProxyOptions(http="http://proxy.example.com:3128")} if proxy else {}),
    }
    return site(roles, **changes)


def pair(*, ca: bool = True, os: Any = DEBIAN_13, **given: Any) -> Cluster:
    """Two heads with one Alertmanager each."""
    roles: dict[str, Any] = {
        "alertmanager": AlertmanagerOptions(nodes=("head1", "head2"), **given),
        "prometheus": PrometheusOptions(plain_http=not ca),
        **({"site_ca": SiteCaOptions()} if ca else {}),
    }
    second = make_node("head2", 20, NodeRole.HEAD, os=os).model_copy(update={"primary": False})
    nodes = (make_node("head1", 10, NodeRole.HEAD, os=os), second, make_node("gpu1", 11, os=os))
    return make_cluster(*(node.with_options(roles) for node in nodes), networks=NETWORKS)


SITE = cluster(FULL, proxy=True)
HEAD = head(SITE)
OPTIONS = HEAD.options["alertmanager"]
