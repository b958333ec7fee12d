"""The webhook of drills."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer

import pytest

from rackwright.drill.receiver import handler, lines_of

# As Alertmanager 0.28 sends it, shortened (webhook, version 4).
NOTIFICATION = {
    "receiver": "drill",
    "status": "firing",
    "alerts": [
        {"status": "firing", "labels": {"alertname": "NodeDown", "node": "worker1"}, "annotations": {}},
        {"status": "resolved", "labels": {"alertname": "NodeDown", "node": "worker2"}, "annotations": {}},
    ],
    "version": "4",
}


def test_each_alert_is_a_line():
    assert [json.loads(line) for line in lines_of(json.dumps(NOTIFICATION).encode())] == [
        {"status": "firing", "labels": {"alertname": "NodeDown", "node": "worker1"}},
        {"status": "resolved", "labels": {"alertname": "NodeDown", "node": "worker2"}},
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"alerts": 3}', b"\xff"])
def test_what_is_no_notification_is_refused(body):
    with pytest.raises(ValueError, match=r".*"):
        lines_of(body)


def test_notifications_are_added_to_the_file(tmp_path):
    path = tmp_path / "seen"
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(str(path))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        for _ in range(2):
            urllib.request.urlopen(url, json.dumps(NOTIFICATION).encode(), timeout=5).close()
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(url, b"{}", timeout=5)
        server.shutdown()
    assert len(path.read_text().splitlines()) == 4
