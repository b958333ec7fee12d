"""Text for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Mapping

from rackwright.drift.states import Found, History, State


class Families:
    """Metric families in the order in which they are first named; all are gauges."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._samples: dict[str, list[str]] = {name: [] for name in texts}

    def add(self, family: str, value: object, **labels: str) -> None:
        """One sample; the family is named without its `rackwright_drift_`."""
        told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        self._samples[family].append(f"rackwright_drift_{family}{{{told}}} {value}")

    def text(self) -> str:
        """The whole file."""
        lines = []
        for family, samples in self._samples.items():
            name = f"rackwright_drift_{family}"
            lines += [f"# HELP {name} {self._texts[family]}", f"# TYPE {name} gauge", *samples]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def metrics(cluster: str, found: Mapping[str, Found], history: History, seconds: float, now: float) -> str:
    """What one round of push mode found."""
    families = Families(
        {
            "operations": "Operations that would change something, by role.",
            "drifted": "1 if the node is not as declared.",
            "answers": "Answers that are not the expected ones.",
            "unreachable": "1 if the node could not be reached.",
            "unknown": "1 if it could not be told.",
            "last_in_sync_timestamp_seconds": "When the node was last seen as declared.",
            "last_check_timestamp_seconds": "When the last check ended.",
            "check_duration_seconds": "How long the last check took.",
        }
    )
    for name, one in found.items():
        for role, count in sorted(one.operations.items()):
            families.add("operations", count, cluster=cluster, node=name, role=role)
        families.add("drifted", int(one.state is State.DRIFTED), cluster=cluster, node=name)
        families.add("answers", one.count, cluster=cluster, node=name)
        families.add("unreachable", int(one.state is State.UNREACHABLE), cluster=cluster, node=name)
        families.add("unknown", int(one.state is State.UNKNOWN), cluster=cluster, node=name)
        in_sync = history[name].last_in_sync
        if in_sync is not None:
            families.add("last_in_sync_timestamp_seconds", f"{in_sync:.3f}", cluster=cluster, node=name)
    families.add("last_check_timestamp_seconds", f"{now:.3f}", cluster=cluster)
    families.add("check_duration_seconds", f"{seconds:.3f}", cluster=cluster)
    return families.text()
