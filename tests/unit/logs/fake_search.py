"""A search cluster that fits on a page: it keeps objects and documents in memory, and answers as both products do.

Also a program: `fake_search.py PORT CERTIFICATE KEY` serves TLS, for rsyslog in a lab rack.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LOGIN = ("manager", "s3cret")
WRITER = ("writer", "s3cret")


class Cluster:
    """What it holds."""

    def __init__(self) -> None:
        self.objects = {}
        self.saved = {}
        self.documents = []
        self.bulk_errors = []
        self.requests = []
        self.refuse = None

    def answer(self, method, path, query, body, headers):
        """(status, JSON)"""
        self.requests.append((method, path, query))
        if self.refuse is not None:
            return self.refuse
        if path.endswith("/_bulk"):
            return self._bulk(body, query)
        if path.endswith("/_search"):
            return self._search(json.loads(body))
        if path.startswith("/api/saved_objects/"):
            return self._dashboards(path, body, headers)
        if path == "/":
            return 200, {"version": {"number": "8.0.0"}}
        return self._object(method, path, query, body)

    def _object(self, method, path, query, body):
        kind, name = path.strip("/").rsplit("/", 1)
        if method == "PUT":
            known = self.objects.get(path)
            if kind == "_plugins/_ism/policies" and known is not None and "if_seq_no" not in query:
                return 409, {"error": "version conflict"}
            self.objects[path] = json.loads(body)
            return 200, {"acknowledged": True}
        if path not in self.objects:
            return 404, {"error": "not found"}
        there = self.objects[path]
        if kind == "_ilm/policy":
            return 200, {
                name: {"version": 1, "modified_date": "2026", "policy": {**there["policy"], "_meta": {}}}
            }
        if kind == "_plugins/_ism/policies":
            return 200, {
                "_id": name,
                "_version": 1,
                "_seq_no": 7,
                "_primary_term": 1,
                "policy": there["policy"],
            }
        if kind == "_index_template":
            return 200, {"index_templates": [{"name": name, "index_template": there}]}
        return 200, {name: there}

    def _bulk(self, body, query):
        assert body.endswith(b"\n")
        lines = [line for line in body.decode().split("\n") if line]  # rsyslog ends with an empty one
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            ((verb, about),) = json.loads(action).items()
            if verb != "create":
                self.bulk_errors.append(action)
            self.documents.append({"_index": about["_index"], "_query": query, **json.loads(document)})
            items.append({verb: {"_index": about["_index"], "status": 201}})
        return 200, {"took": 1, "errors": False, "items": items}

    def _search(self, body):
        if body["size"] == 0:
            newest = {}
            for one in self.documents:
                newest[one["node"]] = max(newest.get(one["node"], 0), _millis(one["@timestamp"]))
            buckets = [{"key": node, "newest": {"value": value}} for node, value in newest.items()]
            return 200, {
                "_shards": {"failed": 0},
                "aggregations": {"nodes": {"buckets": buckets}},
                "hits": {"hits": []},
            }
        bounds = body["query"]["bool"]["filter"][1]["range"]["@timestamp"]
        found = [
            one for one in self.documents if bounds["gte"] <= _millis(one["@timestamp"]) <= bounds["lte"]
        ]
        found.sort(key=lambda one: _millis(one["@timestamp"]), reverse=True)
        hits = [{"_source": one} for one in found[: body["size"]]]
        return 200, {"_shards": {"failed": 0}, "timed_out": False, "hits": {"hits": hits}}

    def _dashboards(self, path, body, headers):
        if "osd-xsrf" not in headers and "kbn-xsrf" not in headers:
            return 400, {"message": "Request must contain a kbn-xsrf header."}
        if path.endswith("/_export"):
            (wanted,) = json.loads(body)["objects"]
            there = self.saved.get((wanted["type"], wanted["id"]))
            return (400, {"message": "Error fetching objects"}) if there is None else (200, there)
        boundary = headers["Content-Type"].partition("boundary=")[2]
        part = body.decode().split(f"--{boundary}")[1]
        for line in part.partition("\r\n\r\n")[2].strip().splitlines():
            one = json.loads(line)
            self.saved[one["type"], one["id"]] = one
        return 200, {"success": True, "successCount": len(self.saved)}


def _millis(stamp):
    return int(datetime.fromisoformat(stamp).timestamp() * 1000)


def serve(cluster, *, port=0, context=None):
    """A server that runs in a thread."""
    tokens = {"Basic " + base64.b64encode(":".join(login).encode()).decode() for login in (LOGIN, WRITER)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self):
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            if self.headers.get("Authorization") not in tokens:
                status, said = 401, {"error": "security_exception"}
            else:
                status, said = cluster.answer(self.command, parts.path, query, body, self.headers)
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_HEAD = _serve  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("0.0.0.0" if context else "127.0.0.1", port), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    return server


if __name__ == "__main__":
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(sys.argv[2], sys.argv[3])
    there = Cluster()
    serve(there, port=int(sys.argv[1]), context=tls)
    for line in sys.stdin:
        print(
            json.dumps(
                {
                    "documents": there.documents[-int(line) :],
                    "objects": sorted(there.objects),
                    "errors": there.bulk_errors,
                    "n": len(there.documents),
                }
            ),
            flush=True,
        )
