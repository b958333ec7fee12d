"""The alertmanager role: options, settings and other files whole, and what a head gets."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

from rackwright.model.monitoring import ExposesMetrics, RoutesAlerts
from rackwright.osfamily.known import os_release
from rackwright.roles.alertmanager import texts
from rackwright.roles.alertmanager.options import AlertmanagerOptions
from rackwright.roles.alertmanager.settings import alertmanager_yml, group_by
from rackwright.roles.site_ca.options import SiteCaOptions
from tests.factories import make_node
from tests.unit.roles.alertmanager_site import FULL, HEAD, OPTIONS, SITE, cluster, pair
from tests.unit.roles.container_site import changed, sentences
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.sites import expected, head, site, worker

OPS = {"ops": {"email": [{"to": ["ops@example.com"]}]}}
SMTP = {"server": "mail.example.com:25", "sender": "rw@example.com"}
HOOK = {"url": "https://h/x"}


def hook(**given):
    return {"receivers": {"ops": {"webhook": [given]}}}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": ["head1", "head1"]}, "Both nodes of the pair are the same."),
        ({"nodes": ["head1", "head2"], "gossip_port": 9093}, "`port` and `gossip_port` are the same."),
        ({"receivers": {"nowhere": {"webhook": [HOOK]}}}, "The receiver name nowhere is reserved by rackwright."),
        ({"receivers": {"rackwright-drill": {"webhook": [HOOK]}}}, "The receiver name rackwright-drill is reserved by rackwright."),
        ({"receivers": {"Ops": {"webhook": [HOOK]}}}, "String should match pattern '^[a-z][a-z0-9-]{0,30}$'"),
        ({"receivers": {"ops": {}}}, "This receiver has no destination."),
        ({"receivers": OPS}, "The receiver ops sends e-mail, and no mail server is declared."),
        ({"critical": {"receiver": "ops"}}, "`critical` names the receiver ops, which is not declared."),
        ({"watchdog": "ops"}, "`watchdog` names the receiver ops, which is not declared."),
        (
            {"routes": [{"match": {"a": "b"}, "receiver": "x"}]},
            "`routes[0]` names the receiver x, which is not declared.",
        ),
        ({"warning": {"mute": ["nights"]}}, "`warning` names the mute time nights, which is not declared."),
        (
            {**hook(**HOOK), "routes": [{"match": {"a": "b"}, "receiver": "ops", "mute": ["x"]}]},
            "`routes[0]` names the mute time x, which is not declared.",
        ),
        ({**hook(**HOOK), "routes": [{"receiver": "ops"}]}, "This route takes every alert."),
        (
            {**hook(**HOOK), "routes": [{"match_regex": {"node": "gpu("}, "receiver": "ops"}]},
            "'gpu(' for node is not a regular expression: missing ), unterminated subpattern at position 3.",
        ),
        (
            {"smtp": {**SMTP, "tls": False, "login": {"user": "u", "stored_as": "p"}}},
            "The password of the mail server would cross the network in the clear.",
        ),
        (hook(), "A webhook has either `url` or `url_stored_as`."),
        (hook(**HOOK, url_stored_as="x"), "A webhook has either `url` or `url_stored_as`."),
        (
            hook(**HOOK, bearer_stored_as="t", login={"user": "u", "stored_as": "p"}),
            "A webhook has either `login` or `bearer_stored_as`.",
        ),
        (hook(url="https://me:secret@h/x"), "The URL contains credentials."),
        (
            {"mute_times": {"nights": [{"times": [{"start": "22:00", "end": "06:00"}]}]}},
            "22:00 to 06:00 is not part of one day.",
        ),
        ({"mute_times": {"nights": [{}]}}, "This mute time never ends: no alert would be sent."),
        ({"mute_times": {"x": [{"days_of_month": ["7:1"]}]}}, "7:1 is not a range of days of a month."),
        ({"mute_times": {"x": [{"days_of_month": ["0"]}]}}, "0 is not a range of days of a month."),
        ({"mute_times": {"x": [{"days_of_month": ["-3:2"]}]}}, "-3:2 is not a range of days of a month."),
        ({"group_by": []}, "Tuple should have at least 1 item after validation, not 0"),
        ({"password": "x"}, "Extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_options_that_are_refused(given, sentence):
    assert errors_in(AlertmanagerOptions, given) == [sentence]


def test_ranges_of_days_that_alertmanager_takes():
    days = ("1:7", "-1", "-7:-1", "15", "1:-1")
    given = {"mute_times": {"x": [{"days_of_month": days}]}}
    assert AlertmanagerOptions.model_validate(given).mute_times["x"][0].days_of_month == days


def test_problems():
    assert sentences(SITE, "alertmanager", "head1") == []
    elsewhere = AlertmanagerOptions(nodes=("gpu1", "head1"))
    assert list(elsewhere.problems(SITE)) == [
        ("nodes[0]", "gpu1 is not a head of this cluster.", "one of: head1")
    ]
    assert sentences(cluster({}, ca=False), "alertmanager", "head1") == []  # plain HTTP is declared there
    bare = site({"alertmanager": AlertmanagerOptions()})
    assert [sentence for _, sentence, _ in sentences(bare, "alertmanager", "head1")] == [
        "head1 has no certificate for alertmanager: metrics and their password would cross the network unencrypted."
    ]


def test_what_a_release_lacks_is_refused():
    old = cluster({}, os=os_release("ubuntu-22.04"))
    assert sentences(old, "alertmanager", "head1") == [
        (
            "",
            "ubuntu-22.04 has Alertmanager 0.23, which reads no passwords from files: 0.25 does.",
            "run head1 on a newer release",
        )
    ]
    secret_url = hook(url_stored_as="hook_url")
    for release, version in (("debian-12", "0.25"), ("ubuntu-24.04", "0.26")):
        assert sentences(cluster(secret_url, os=os_release(release)), "alertmanager", "head1") == [
            (
                "receivers.ops.webhook[0].url_stored_as",
                f"Alertmanager {version} of {release} reads no webhook's URL from a file.",
                "use `url`, with `login` or `bearer_stored_as`",
            )
        ]
    for release in ("debian-13", "ubuntu-26.04", "rocky-9"):  # the last: what the site brings is not known
        assert sentences(cluster(secret_url, os=os_release(release)), "alertmanager", "head1") == []


def warned(given, **changes):
    found = cluster(given, **changes)
    return [sentence for _, sentence, _ in head(found).options["alertmanager"].warnings(found)]


def test_alerts_without_a_receiver_are_warned_of():
    assert warned({}) == ["No receiver is declared: alerts go nowhere."]
    assert warned({**hook(**HOOK), "critical": None}) == ["Critical alerts go nowhere."]
    assert warned(FULL) == []
    alone = site({"alertmanager": OPTIONS, "site_ca": SiteCaOptions()})
    assert [sentence for _, sentence, _ in OPTIONS.warnings(alone)] == [
        "No Prometheus is declared to send alerts here."
    ]


def test_a_password_in_the_clear_is_warned_of():
    assert warned(hook(url="http://h/x", bearer_stored_as="t")) == [
        "The password of this webhook crosses the network in the clear."
    ]
    assert warned(hook(url="http://h/x")) == []


def test_the_secrets_that_the_site_supplies():
    assert OPTIONS.supplied_secrets == (
        *("smtp_password", "slack_url", "hook_password", "hook_url", "hook_token", "pagerduty_key"),
    )
    assert OPTIONS.secrets == ("monitoring_password",)


def test_settings():
    assert alertmanager_yml(SITE, HEAD, OPTIONS) == expected("alertmanager/alertmanager.yml")
    small = cluster({})
    options = head(small).options["alertmanager"]
    assert alertmanager_yml(small, head(small), options) == expected("alertmanager/small.yml")


@pytest.mark.parametrize("proxy", [False, True])
def test_amtool_takes_the_settings(tmp_path, proxy):
    """Alertmanager 0.25 of Debian 12 as well, without what that lacks."""
    assert shutil.which("amtool"), "amtool is missing: `make system` installs prometheus-alertmanager"
    given = {**FULL, "receivers": {**FULL["receivers"], "oncall": FULL["receivers"]["dead-man"]}}
    given["routes"] = [{"match": {"alertname": text}, "receiver": "ops"} for text in HOSTILE]
    rack = cluster(given, proxy=proxy)
    options = head(rack).options["alertmanager"]
    (tmp_path / "n.tmpl").write_text(texts.notifications(options))
    text = alertmanager_yml(rack, head(rack), options)
    (tmp_path / "a.yml").write_text(text.replace(texts.notifications_file(options), str(tmp_path / "n.tmpl")))
    done = subprocess.run(
        ["amtool", "check-config", tmp_path / "a.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


HOSTILE = (
    "a b",
    'a"b',
    "a'b",
    "#a",
    "a: b",
    "{a}",
    "a\\b",
    "a,b",
    "- a",
    "&a",
    "*a",
    "!a",
    "%a",
    "|a",
    "true",
    "$(a)",
    "é",
)


def test_whatever_a_label_holds_it_is_one_value():
    routes = [{"match": {"alertname": text}, "receiver": "ops"} for text in HOSTILE]
    rack = cluster({**hook(**HOOK), "routes": routes})
    text = alertmanager_yml(rack, head(rack), head(rack).options["alertmanager"])
    found = [route["matchers"] for route in yaml.safe_load(text)["route"]["routes"][1:-3]]
    # between quotes of Alertmanager's own, where it knows these two escapes
    unquoted = [
        one[0].removeprefix('alertname="')[:-1].replace('\\"', '"').replace("\\\\", "\\") for one in found
    ]
    assert unquoted == list(HOSTILE)


def test_a_first_receiver_gets_what_is_critical_and_warnings():
    options = AlertmanagerOptions.model_validate(hook(**HOOK))
    assert [options.receiver_of(one) for one in options.severities.values()] == ["ops", "ops", "nowhere"]


def route_of(config, **labels):
    """The receiver that Alertmanager's first matching route has; only `=` is needed here."""
    for route in config["route"]["routes"]:
        pairs = [one.split("=", 1) for one in route.get("matchers", [])]
        if all(labels.get(label) == value.strip('"') for label, value in pairs) and not route.get("continue"):
            return route["receiver"]
    return config["route"]["receiver"]


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"alertname": "NodeDown", "severity": "critical"}, "oncall"),
        ({"alertname": "DiskLow", "severity": "warning"}, "dead-man"),
        ({"alertname": "OfTheSite", "severity": "page"}, "dead-man"),
        ({"alertname": "OfTheSite"}, "dead-man"),
        ({"alertname": "NodeRebooted", "severity": "info"}, "ops"),
        ({"alertname": "Watchdog", "severity": "info"}, "dead-man"),
    ],
)
def test_where_an_alert_goes(labels, receiver):
    rack = cluster({**FULL, "warning": {"receiver": "dead-man"}, "routes": []})
    config = yaml.safe_load(alertmanager_yml(rack, head(rack), head(rack).options["alertmanager"]))
    assert route_of(config, **labels) == receiver


def test_the_watchdog_disturbs_only_its_receiver():
    rack = cluster(hook(**HOOK))
    config = yaml.safe_load(alertmanager_yml(rack, head(rack), head(rack).options["alertmanager"]))
    assert route_of(config, alertname="Watchdog", severity="critical") == "nowhere"


def test_a_dead_leaf_is_one_notification():
    def rack(*places):
        nodes = [
            make_node(f"w{n}", 20 + n, rack=rack, switches=(leaf,)) for n, (rack, leaf) in enumerate(places)
        ]
        return SITE.model_copy(update={"nodes": tuple(nodes)})

    assert group_by(rack(("r1", "leaf1"), ("r2", "leaf2")), OPTIONS) == ("alertname", "rack", "leaf")
    assert group_by(rack(("r1", "leaf1"), ("r2", "leaf1")), OPTIONS) == ("alertname", "leaf")
    own = OPTIONS.model_copy(update={"group_by": ("node",)})
    assert group_by(rack(("r1", "leaf1")), own) == ("node",)


def test_notifications():
    assert texts.notifications(OPTIONS) == expected("alertmanager/notifications.tmpl")
    assert '"rackwright.runbooks" }}{{ end }}' in texts.notifications(AlertmanagerOptions())


def test_a_single_one_has_no_gossip():
    assert texts.arguments(SITE, HEAD, OPTIONS) == (
        "--config.file=/etc/prometheus/alertmanager.yml",
        "--storage.path=/var/lib/prometheus/alertmanager",
        "--web.external-url=https://10.9.0.10:9093/",
        "--cluster.listen-address=",
    )
    assert texts.gossip_yml(SITE, HEAD, OPTIONS) is None
    assert [one.ports for one in OPTIONS.listeners(HEAD)] == [(9093, 9093)]


def test_a_pair_talks_over_tls_to_each_other_alone():
    two = pair()
    second = two.by_name["head2"]
    options = second.options["alertmanager"]
    assert texts.arguments(two, second, options)[3:] == (
        "--cluster.listen-address=10.9.0.20:9094",
        "--cluster.peer=10.9.0.10:9094",
        "--cluster.tls-config=/etc/rackwright-exporters/alertmanager/gossip.yml",
    )
    assert texts.gossip_yml(two, second, options) == expected("alertmanager/gossip.yml")
    assert [(one.ports[0], one.protocol) for one in options.listeners(second)] == [
        (9093, "tcp"),
        (9094, "tcp"),
    ]
    old = pair(os=os_release("debian-12"))
    assert "client_allowed_sans" not in texts.gossip_yml(old, old.by_name["head2"], options)
    assert [one.protocol for one in options.listeners(pair(ca=False).by_name["head1"])] == [
        "tcp",
        "tcp",
        "udp",
    ]
    assert "alertmanager" not in two.by_name["gpu1"].options


def test_root_asks_it_with_a_password_from_a_file():
    found = texts.readable_files(SITE, HEAD, OPTIONS)
    assert found["/etc/prometheus/amtool.yml"] == expected("alertmanager/amtool-defaults.yml")
    assert found["/etc/rackwright-exporters/alertmanager/amtool.yml"] == expected("alertmanager/amtool.yml")


def test_the_secret_of_a_receiver_that_is_gone_is_removed(tmp_path):
    folder = tmp_path / "secrets"

    def shell(command):
        command = command.replace(texts.secrets_folder(OPTIONS), str(folder))
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout

    assert shell(texts.strange_secrets(OPTIONS)) == ""  # before the folder is there
    folder.mkdir()
    for name in (*OPTIONS.supplied_secrets, "old_token", "slack_url2"):
        (folder / name).touch()
    assert shell(texts.strange_secrets(OPTIONS)) == "old_token\nslack_url2\n"
    shell(texts.remove_strange_secrets(OPTIONS))
    assert {path.name for path in folder.iterdir()} == set(OPTIONS.supplied_secrets)
    assert shell(texts.strange_secrets(OPTIONS)) == ""
    none = AlertmanagerOptions()
    shell(texts.remove_strange_secrets(none))
    assert list(folder.iterdir()) == []


def test_silences():
    assert OPTIONS.silence_command(['node=~"gpu1|gpu2"'], 15, "Ada's run") == (
        "HOME=/nonexistent amtool --no-version-check --timeout=10s silence add --duration=15m --author=rackwright "
        """'--comment=Ada'"'"'s run' 'node=~"gpu1|gpu2"'"""
    )
    assert OPTIONS.silence_command(['node=~"gpu1"', 'alertname="NodeRebooted"'], 15, "c").endswith(
        """--comment=c 'node=~"gpu1"' 'alertname="NodeRebooted"'"""
    )
    amtool = "HOME=/nonexistent amtool --no-version-check --timeout=10s"
    assert OPTIONS.unsilence_command("a b") == (
        f"if {amtool} --output=json alert query --silenced | grep -qF 'a b'; "
        f"""then {amtool} silence update --end="$(date -u -d "3 minutes" +%FT%TZ)" 'a b'; """
        f"else {amtool} silence expire 'a b'; fi"
    )


def test_what_others_find():
    assert HEAD.offers(RoutesAlerts) is OPTIONS
    assert OPTIONS.alerts_address(SITE, HEAD) == "10.9.0.10:9093"
    assert [one.job for one in OPTIONS.scrapes(SITE, HEAD)] == ["alertmanager"]
    assert isinstance(OPTIONS, ExposesMetrics)


def test_the_head_gets_it_and_no_other_node():
    plan = planned(SITE, HEAD)
    assert plan.error is None
    assert changed(plan, "alertmanager", "package") == ["prometheus-alertmanager"]
    assert content(plan, "/etc/prometheus/alertmanager.yml") == expected("alertmanager/alertmanager.yml")
    assert "amtool check-config" in commands(plan, "Write Alertmanager's settings")[0]
    assert not changed(planned(SITE, worker(SITE)), "alertmanager", "package")


def test_secrets_are_in_files_that_it_alone_reads_and_in_no_command():
    plan = planned(SITE, HEAD)
    folder = "/etc/rackwright-exporters/alertmanager"
    assert content(plan, f"{folder}/secrets/slack_url") == "(secret slack_url)"
    changes = {one.target: one for operation in plan.operations for one in operation.changes}
    for secret in OPTIONS.supplied_secrets:
        assert changes[f"{folder}/secrets/{secret}"].after.startswith("file 640 root:prometheus, content (")
    assert changes[f"{folder}/password"].after.startswith("file 600 root:root, content (")
    mine = [operation for operation in plan.operations if operation.role == "alertmanager"]
    assert not any("(secret" in command for operation in mine for command in operation.commands)
    assert "(secret" not in content(plan, "/etc/prometheus/alertmanager.yml")
