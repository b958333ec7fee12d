"""Drills of alerts about monitoring itself: exporters, Prometheus, Alertmanager."""

from __future__ import annotations

from rackwright.drill.choose import head, worker
from rackwright.drill.model import Drill, Shell
from rackwright.silences.amtool import AMTOOL
from rackwright.textfiles import TEXTFILES

_PROMETHEUS, _ALERTMANAGER = "prometheus", "prometheus-alertmanager"
_PASSWORD = "/etc/rackwright-exporters/prometheus/password"
_ASIDE = ".rackwright-drill"
_RULES = "/run/rackwright-drill-rules.yml"
_FAILING = "up * on (job) up"
"""`many-to-many matching not allowed`, as soon as a job has two targets."""
_BLOCK = "01DAMAGED00000000000000000"
"""A name that Prometheus takes for a block's (a ULID)."""
_META = f'{{"ulid": "{_BLOCK}", "minTime": 1, "maxTime": 2, "version": 1}}'
_DBUS = "/run/dbus/system_bus_socket"
_TEXTFILE = f"{TEXTFILES}/rackwright-drill.prom"


def _flag(unit: str, name: str) -> str:
    """A shell's word: the value of a flag with which the unit's program runs."""
    pid = f"$(systemctl show -p MainPID --value {unit})"
    return f"$(tr '\\0' '\\n' < /proc/{pid}/cmdline | sed -n 's/^--{name}=//p')"


def _settings(unit: str, damage: str) -> Shell:
    """`damage` writes other settings to `$conf`, from those in `$conf{_ASIDE}`, which keep their times."""
    conf = f"conf={_flag(unit, 'config.file')}"
    return Shell(
        f"{conf}; mv $conf $conf{_ASIDE} && {damage}; systemctl reload {unit}",
        f"{conf}; [ ! -e $conf{_ASIDE} ] || mv $conf{_ASIDE} $conf; systemctl reload {unit}",
    )


def _broken(unit: str) -> Shell:
    return _settings(unit, "echo 'rackwright drill: {' > $conf")


def _rule_fails() -> Shell:
    rules = f"groups: [{{name: rackwright-drill, rules: [{{record: drill, expr: {_FAILING}}}]}}]"
    shell = _settings(
        _PROMETHEUS,
        f"echo '{rules}' > {_RULES} && sed 's|^rule_files:|&\\n- {_RULES}|' $conf{_ASIDE} > $conf",
    )
    return Shell(shell.make, f"{shell.heal}; rm -f {_RULES}")


def _damaged_block() -> Shell:
    """One that has lost its index and its chunks."""
    block = f"{_flag(_PROMETHEUS, 'storage.tsdb.path')}/{_BLOCK}"
    return Shell(f"mkdir {block} && echo '{_META}' > {block}/meta.json", f"rm -rf {block}")


def _outage() -> Shell:
    """Alertmanager is away until Prometheus has dropped an alert; during the outage none could be sent."""
    login = f'printf \'user = "prometheus:%s"\\n\' "$(cat {_PASSWORD})"'
    url = f"https://{_flag(_PROMETHEUS, 'web.listen-address')}/metrics"
    count = "awk '/^prometheus_notifications_dropped_total/ { print $2 }'"
    dropped = f"$({login} | curl -skK - {url} | {count})"
    return Shell(
        f"before={dropped}; systemctl stop {_ALERTMANAGER}; "
        f'for try in $(seq 200); do [ "{dropped}" = "$before" ] || break; sleep 0.5; done; '
        f"systemctl start {_ALERTMANAGER}",
        f"systemctl start {_ALERTMANAGER}",
    )


def _unreachable_receiver() -> Shell:
    """An alert that is routed to a webhook where nothing listens (inventory/drill.yaml)."""
    add = f"{AMTOOL} alert add RackwrightDrill drill=unreachable"
    at = "$(date -u -d '{}' +%FT%TZ)"
    return Shell(
        f'{add} --end="{at.format("1 hour")}"',
        f'{add} --start="{at.format("1 hour ago")}" --end="{at.format("1 second ago")}"',
    )


_OF_NODES = (
    Drill(
        "TextfileBroken",
        "an invalid metrics file",
        worker,
        Shell(f"echo 'no metric at all {{' > {_TEXTFILE}", f"rm -f {_TEXTFILE}"),
    ),
    Drill(
        "CollectorFailed",
        "D-Bus refuses node_exporter",
        worker,
        Shell(f"chmod 600 {_DBUS}", f"chmod 666 {_DBUS}"),
        labels={"collector": "systemd"},
    ),
    Drill(
        "ExporterDown",
        "the MariaDB exporter is stopped",
        head,
        Shell("systemctl stop prometheus-mysqld-exporter", "systemctl start prometheus-mysqld-exporter"),
        labels={"job": "mariadb"},
        lane="slurm",  # whose drills read what it exports
    ),
    Drill(
        "ProbeExporterDown",
        "the probe exporter is stopped",
        head,
        Shell("systemctl stop prometheus-blackbox-exporter", "systemctl start prometheus-blackbox-exporter"),
        labels={"job": "blackbox"},
        names_node=False,
        alone=True,
    ),
)
# Prometheus forgets for seconds where Alertmanager is when it reads its settings again: what happens then is sent a minute
# later.
_OF_PROMETHEUS = (
    Drill(
        "PrometheusConfigNotLoaded",
        "a Prometheus configuration that is not valid YAML",
        head,
        _broken(_PROMETHEUS),
        alone=True,
    ),
    Drill("PrometheusRuleFailures", "a rule that matches too much", head, _rule_fails(), alone=True),
    Drill("PrometheusStorageFailing", "a damaged block", head, _damaged_block(), lane="storage"),
    Drill(
        "PrometheusRulesLate",
        "Prometheus freezes three times",
        head,
        Shell(
            f"for time in 1 2 3; do systemctl kill -s STOP {_PROMETHEUS}; sleep 8; "
            f"systemctl kill -s CONT {_PROMETHEUS}; sleep 7; done",
            f"systemctl kill -s CONT {_PROMETHEUS}",
        ),
        alone=True,
    ),
)
_OF_ALERTMANAGER = (
    Drill(
        "AlertmanagerConfigNotLoaded",
        "an Alertmanager configuration that is not valid YAML",
        head,
        _broken(_ALERTMANAGER),
        lane="alertmanager",
    ),
    Drill(
        "AlertmanagerNotificationsFailing",
        "a receiver does not listen",
        head,
        _unreachable_receiver(),
        lane="alertmanager",
    ),
    Drill(
        "PrometheusCannotNotify",
        "Alertmanager is down for half a minute",
        head,
        _outage(),
        alone=True,
    ),
)
PROMETHEUS_DRILLS: tuple[Drill, ...] = (*_OF_NODES, *_OF_PROMETHEUS, *_OF_ALERTMANAGER)
