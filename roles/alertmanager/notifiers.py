"""The parts of alertmanager.yml that define how a receiver is reached.

Keys: prometheus/alertmanager, config/notifiers.go at the tags v0.25.0 and v0.28.1 (read 2026-11-27).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import SetsProxy
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.alertmanager.receivers import Email, Pagerduty, Receiver, Slack, Webhook
from rackwright.roles.alertmanager.texts import secret_file

_SUBJECT = '{{ template "rackwright.subject" . }}'
_TEXT = '{{ template "rackwright.text" . }}'
_SEVERITY = "{{ if .CommonLabels.severity }}{{ .CommonLabels.severity }}{{ else }}warning{{ end }}"


def receiver_config(
    cluster: Cluster, node: Node, options: AlertmanagerOptions, receiver: Receiver
) -> dict[str, Any]:
    """All places that one receiver sends to."""
    proxy = _proxy(cluster, node)
    found = {
        "email_configs": [_email(one) for one in receiver.email],
        "slack_configs": [_slack(options, one, proxy) for one in receiver.slack],
        "webhook_configs": [_webhook(options, one, proxy) for one in receiver.webhook],
        "pagerduty_configs": [_pagerduty(options, one, proxy) for one in receiver.pagerduty],
    }
    return {key: value for key, value in found.items() if value}


def mail_server(options: AlertmanagerOptions) -> dict[str, Any]:
    """The keys of `global` about e-mail."""
    smtp = options.smtp
    if smtp is None:
        return {}
    found: dict[str, Any] = {
        "smtp_smarthost": smtp.server,
        "smtp_from": smtp.sender,
        "smtp_require_tls": smtp.tls,
    }
    if smtp.login is not None:
        found["smtp_auth_username"] = smtp.login.user
        found["smtp_auth_password_file"] = secret_file(options, smtp.login.stored_as)
    return found


def _proxy(cluster: Cluster, node: Node) -> Mapping[str, Any]:
    """What makes a receiver go by the site's proxy: Alertmanager does not read its environment."""
    declared = node.offers(SetsProxy)
    if declared is None:
        return {}
    return {"proxy_url": declared.proxy_environment(cluster, node)["HTTPS_PROXY"]}


def _email(one: Email) -> dict[str, Any]:
    return {
        "to": ", ".join(one.to),
        "send_resolved": one.resolved,
        "headers": {"Subject": _SUBJECT},
        "html": "",
        "text": _TEXT,
    }


def _slack(options: AlertmanagerOptions, one: Slack, proxy: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "api_url_file": secret_file(options, one.url_stored_as),
        **({"channel": one.channel} if one.channel is not None else {}),
        "send_resolved": one.resolved,
        "title": _SUBJECT,
        "text": _TEXT,
        **_http(proxy if one.proxy else {}),
    }


def _webhook(options: AlertmanagerOptions, one: Webhook, proxy: Mapping[str, Any]) -> dict[str, Any]:
    login: dict[str, Any] = {}
    if one.login is not None:
        login = {
            "basic_auth": {
                "username": one.login.user,
                "password_file": secret_file(options, one.login.stored_as),
            }
        }
    elif one.bearer_stored_as is not None:
        login = {"authorization": {"credentials_file": secret_file(options, one.bearer_stored_as)}}
    address = (
        {"url": one.url}
        if one.url_stored_as is None
        else {"url_file": secret_file(options, one.url_stored_as)}
    )
    return {
        **address,
        "send_resolved": one.resolved,
        **({"max_alerts": one.max_alerts} if one.max_alerts else {}),
        **_http({**login, **(proxy if one.proxy else {})}),
    }


def _pagerduty(options: AlertmanagerOptions, one: Pagerduty, proxy: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "routing_key_file": secret_file(options, one.key_stored_as),
        "send_resolved": one.resolved,
        "severity": _SEVERITY,
        "description": _SUBJECT,
        "details": {"firing": _TEXT},
        **_http(proxy if one.proxy else {}),
    }


def _http(config: Mapping[str, Any]) -> dict[str, Any]:
    return {"http_config": dict(config)} if config else {}
