"""dcgm-exporter of a lab node, simulated by rackwright: this node has no GPU, and no DCGM.

Takes the arguments of NVIDIA's program that rackwright gives it, reads the same list of fields and the same file of users
and certificate, and prints in the same form (rendermetrics of dcgm-exporter 4.8) the state of the simulated
GPUs. In the file OVERRIDES, and in others that begin with its name, root can override values, e.g. for a drill: lines of
`GPU FIELD VALUE`, or `GPU FIELD +RATE` of what grows each second; `*` stands for every GPU. Runs on the node: standard library only, no imports of the package.
"""

import argparse
import base64
import csv
import ctypes
import ctypes.util
import hmac
import json
import re
import socket
import ssl
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STATE = Path("/usr/local/share/rackwright-lab-gpus/dcgm.json")
OVERRIDES = Path("/run/rackwright-lab-gpu-fields")
SIMULATED = "simulated by rackwright's lab"
Override = tuple[str, str, str, float]
"""GPU, field, value, and since when it is so."""


def fields(path: Path) -> list[list[str]]:
    """Name, type and help of each field that is asked for; labels, which the lab has none of, are left out."""
    rows = csv.reader(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    found = [[cell.strip() for cell in row] for row in rows if row]
    for row in found:
        if len(row) != 3:
            raise SystemExit(f"{path}: not three cells: {row}")
    return [row for row in found if row[1] != "label"]


def overrides(first: Path) -> list[Override]:
    """Values that root overrides."""
    found: list[Override] = []
    for path in sorted(first.parent.glob(f"{first.name}*")):
        try:
            since, text = path.stat().st_mtime, path.read_text()
        except FileNotFoundError:
            continue  # removed just now
        lines = (line.split() for line in text.splitlines())
        found += [(line[0], line[1], line[2], since) for line in lines if len(line) == 3]
    return found


def job_of(folder: Path | None, gpu: str) -> str | None:
    """The job that its prolog wrote for a GPU."""
    if folder is None or not (folder / gpu).is_file():
        return None
    return (folder / gpu).read_text().strip() or None


def values_of(gpu: dict[str, Any], since: float, changed: Sequence[Override], now: float) -> dict[str, float]:
    """What the fields of one GPU are now."""
    values: dict[str, float] = dict(gpu["values"])
    for field, rate in gpu["rates"].items():
        values[field] = round(values[field] + rate * (now - since), 3)
    for number, field, value, from_then in changed:
        if number in ("*", gpu["labels"]["gpu"]) and field in values:
            grows = value.startswith("+")
            values[field] = (values[field] + float(value[1:]) * (now - from_then)) if grows else float(value)
    return values


def page(
    state: dict[str, Any],
    wanted: Sequence[Sequence[str]],
    changed: Sequence[Override],
    folder: Path | None,
    now: float,
) -> str:
    """The whole /metrics."""
    reported = [(gpu["labels"], values_of(gpu, state["since"], changed, now)) for gpu in state["gpus"]]
    lines = []
    for field, kind, text in wanted:
        rows = [(labels, values[field]) for labels, values in reported if field in values]
        if not rows:
            continue
        lines += [f"# HELP {field} {text} ({SIMULATED})", f"# TYPE {field} {kind}"]
        for labels, value in rows:
            job = job_of(folder, labels["gpu"])
            more = {} if job is None else {"hpc_job": job}
            if field == "DCGM_FI_DEV_XID_ERRORS":
                more = {"err_code": f"{value:g}", "err_msg": SIMULATED if value else "No Error", **more}
            cells = ",".join(f'{name}="{cell}"' for name, cell in (labels | more).items())
            lines.append(f"{field}{{{cells}}} {value:.15g}")
    return "\n".join(lines) + "\n"


class Users:
    """Who may read, and the certificate: a file of exporter-toolkit's, as rackwright writes it."""

    def __init__(self, path: Path | None) -> None:
        """No file: everyone may, in the clear."""
        self.text = path.read_text() if path is not None else ""
        self.known: set[str] = set()
        self.crypt = (
            ctypes.CDLL(ctypes.util.find_library("crypt") or "libcrypt.so.1").crypt if self.text else None
        )
        if self.crypt is not None:
            self.crypt.restype = ctypes.c_char_p

    def _entry(self, name: str) -> str | None:
        found = re.search(rf"^  {name}: (\S+)$", self.text, re.MULTILINE)
        return found[1] if found else None

    def secure(self, connection: socket.socket) -> socket.socket:
        """TLS with the certificate that is there now."""
        chain, key = self._entry("cert_file"), self._entry("key_file")
        if chain is None:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        return context.wrap_socket(connection, server_side=True)

    def lets_in(self, header: str | None) -> bool:
        """bcrypt of the password is the one in the file."""
        if self.crypt is None or header in self.known:
            return True
        try:
            user, _, password = (
                base64.b64decode((header or "").removeprefix("Basic ")).decode().partition(":")
            )
        except ValueError:
            return False
        stored = self._entry(re.escape(user)) if user else None
        if stored is None or not stored.startswith("$2"):
            return False
        if not hmac.compare_digest(self.crypt(password.encode(), stored.encode()) or b"", stored.encode()):
            return False
        self.known.add(header or "")
        return True


def server(options: argparse.Namespace) -> ThreadingHTTPServer:
    """Listens, and answers /metrics."""
    users, wanted = Users(options.web_config_file), fields(options.collectors)

    class Handler(BaseHTTPRequestHandler):
        timeout = 20

        def setup(self) -> None:
            self.request = users.secure(self.request)  # here, in the connection's own thread
            super().setup()

        def do_GET(self) -> None:
            if not users.lets_in(self.headers.get("Authorization")):
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
            elif self.path != "/metrics":
                self.send_response(404)
            else:
                state = json.loads(options.state.read_text())
                text = page(
                    state, wanted, overrides(options.overrides), options.hpc_job_mapping_dir, time.time()
                )
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())
                return
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    host, _, port = options.address.rpartition(":")
    found = ThreadingHTTPServer((host, int(port)), Handler)
    found.daemon_threads = True
    found.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust the certificate
    return found


def main() -> None:
    """The flags of dcgm-exporter that rackwright sets; others are refused."""
    parser = argparse.ArgumentParser(description=f"dcgm-exporter, {SIMULATED}", allow_abbrev=False)
    parser.add_argument("-f", "--collectors", type=Path, required=True)
    parser.add_argument("-a", "--address", required=True)
    parser.add_argument("-c", "--collect-interval")
    parser.add_argument("-r", "--remote-hostengine-info")
    parser.add_argument("-n", "--no-hostname", action="store_true")
    parser.add_argument("--web-config-file", type=Path)
    parser.add_argument("--hpc-job-mapping-dir", type=Path)
    parser.set_defaults(state=STATE, overrides=OVERRIDES)
    server(parser.parse_args()).serve_forever()


if __name__ == "__main__":
    main()
