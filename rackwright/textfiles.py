"""Location of metrics for node_exporter's textfile collector. Standard library only: it also goes to nodes."""

from __future__ import annotations

TEXTFILES = "/var/lib/prometheus/node-exporter"
"""The folder that node_exporter reads: Debian's own name, used on every family. It may belong to the exporter's user where the
role node_exporter does not run, so root puts links there and no files."""
METRICS_FOLDER = "/var/lib/rackwright-metrics"
"""What those links lead to: written by root alone, readable by every user; so it cannot lie below /var/lib/rackwright, which
only root may enter."""
