"""What is made of the lines that the webhook wrote."""

from __future__ import annotations

import json

import pytest

from rackwright.drill import notifications
from rackwright.drill.notifications import Notifications


class Rack:
    """A node whose file grows."""

    def __init__(self):
        self.text = ""

    def add(self, status, **labels):
        self.text += json.dumps({"status": status, "labels": labels}) + "\n"

    def run(self, node, argv):
        return self.text[int(argv[-1].split("+")[1].split()[0]) - 1 :]


@pytest.fixture
def rack():
    return Rack()


@pytest.fixture
def sent(rack, monkeypatch):
    monkeypatch.setattr(notifications, "_POLL_SECONDS", 0)
    return Notifications(rack, "head1", 9099)


def test_only_what_was_sent_since_counts(rack, sent):
    rack.add("firing", alertname="NodeDown", node="worker1")
    before = sent.count()
    assert not sent.seen("NodeDown", {"node": "worker1"}, "firing", before)
    rack.add("firing", alertname="NodeDown", node="worker1", rack="r1")
    assert sent.seen("NodeDown", {"node": "worker1"}, "firing", before)
    assert not sent.seen("NodeDown", {"node": "worker2"}, "firing", before)


def test_an_alert_fires_until_it_is_sent_as_resolved(rack, sent):
    assert not sent.firing("GpuHot", {})
    rack.add("firing", alertname="GpuHot", gpu="1")
    assert sent.firing("GpuHot", {"gpu": "1"})
    assert not sent.firing("GpuHot", {"gpu": "2"})
    rack.add("resolved", alertname="GpuHot", gpu="1")
    assert not sent.firing("GpuHot", {"gpu": "1"})


def test_one_of_two_that_resolves_leaves_the_other(rack, sent):
    rack.add("firing", alertname="GpuHot", gpu="1")
    rack.add("firing", alertname="GpuHot", gpu="2")
    rack.add("resolved", alertname="GpuHot", gpu="1")
    assert sent.firing("GpuHot", {})


def test_half_a_line_is_read_when_it_is_whole(rack, sent):
    rack.text = '{"status": "firing", "labels": {"alertname": "X'
    assert sent.count() == 0
    rack.text += '"}}\n'
    assert sent.count() == 1
