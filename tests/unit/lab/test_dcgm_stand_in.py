"""The lab's program in the place of dcgm-exporter: its text, and the program itself with users and a certificate."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rackwright.catalog.read import catalogue
from rackwright.lab import dcgm_stand_in
from rackwright.lab.dcgm_stand_in import SIMULATED, job_of, overrides, page, values_of
from rackwright.lab.gpu_fields import report
from rackwright.model.monitoring import USER
from rackwright.secrets.hashed import bcrypt_hash
from tests.unit.certificates.authorities import issuer

H100 = catalogue()["lab-h100-node"].gpus.model_copy(update={"count": 2})
STATE = report(H100, ["xid:79"], 1000.0)
TEMP, XID = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"
LABELS = (
    'gpu="{0}",UUID="GPU-00000000-0000-0000-0000-00000000000{0}",pci_bus_id="00000000:{1}:00.0",device="nvidia{0}",'
    'modelName="NVIDIA H100-SXM5-80GB (simulated)"'
)


def test_the_form_of_the_text(tmp_path):
    """rendermetrics of dcgm-exporter 4.8: the labels, and for XIDs what they mean."""
    (tmp_path / "1").write_text("42\n")
    wanted = [[TEMP, "gauge", "Temperature"], ["DCGM_FI_DEV_NOT_HERE", "gauge", "x"], [XID, "gauge", "XID"]]
    first, second = LABELS.format(0, "1B"), LABELS.format(1, "2B")
    assert page(STATE, wanted, [], tmp_path, 1000.0) == (
        f"# HELP {TEMP} Temperature ({SIMULATED})\n"
        f"# TYPE {TEMP} gauge\n"
        f"{TEMP}{{{first}}} 29\n"
        f'{TEMP}{{{second},hpc_job="42"}} 29\n'
        f"# HELP {XID} XID ({SIMULATED})\n"
        f"# TYPE {XID} gauge\n"
        f'{XID}{{{first},err_code="0",err_msg="No Error"}} 0\n'
        f'{XID}{{{second},err_code="79",err_msg="{SIMULATED}",hpc_job="42"}} 79\n'
    )


def test_what_grows():
    gpu, energy = STATE["gpus"][0], "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    assert values_of(gpu, 1000.0, [], 1010.0)[energy] == pytest.approx(689_200)
    changed = [("*", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "+5", 1004.0)]
    assert values_of(gpu, 1000.0, changed, 1010.0)["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"] == 30


def test_what_root_says_otherwise(tmp_path):
    file = tmp_path / "fields"
    assert overrides(file) == []
    file.write_text(f"1 {TEMP} 95\nnonsense\n* DCGM_FI_DEV_UNKNOWN 1\n")
    since = file.stat().st_mtime
    told = overrides(file)
    assert told == [("1", TEMP, "95", since), ("*", "DCGM_FI_DEV_UNKNOWN", "1", since)]
    assert [values_of(gpu, 1000.0, told, 1000.0)[TEMP] for gpu in STATE["gpus"]] == [29, 95]
    assert "DCGM_FI_DEV_UNKNOWN" not in values_of(STATE["gpus"][0], 1000.0, told, 1000.0)
    (tmp_path / "fields.job").write_text(f"0 {TEMP} 60\n")
    assert [line[:3] for line in overrides(file)][-1] == ("0", TEMP, "60")


def test_whose_a_gpu_is(tmp_path):
    assert job_of(None, "0") is None
    assert job_of(tmp_path, "0") is None
    (tmp_path / "0").write_text("")
    assert job_of(tmp_path, "0") is None
    (tmp_path / "0").write_text("7\n")
    assert job_of(tmp_path, "0") == "7"


@pytest.fixture
def served(tmp_path, site_ca):
    """The program as a node runs it, with a file of users and a certificate of a CA; its address, and how to ask it."""
    key, chain, trust = site_ca
    stored = bcrypt_hash("open sesame", salt_key="k", salt_of="s", cost=4)
    (tmp_path / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: {chain}\n  key_file: {key}\nbasic_auth_users:\n  {USER}: {stored}\n"
    )
    (tmp_path / "fields.csv").write_text(f"# a comment\n{TEMP}, gauge, Temperature\nDCGM_FI_X, label, no\n")
    (tmp_path / "dcgm.json").write_text(json.dumps(STATE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = (
        Path(dcgm_stand_in.__file__)
        .read_text()
        .replace(str(dcgm_stand_in.STATE), str(tmp_path / "dcgm.json"))
    )
    flags = [f"--address=127.0.0.1:{port}", f"--collectors={tmp_path}/fields.csv", "--collect-interval=10000"]
    flags += [f"--web-config-file={tmp_path}/web.yml", "--no-hostname", "--hpc-job-mapping-dir=/nowhere"]
    program = subprocess.Popen([sys.executable, "-I", "-c", text, *flags])
    context = ssl.create_default_context(cafile=trust)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)

    def ask(login=None, path="/metrics"):
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}")
        if login is not None:
            request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""

    yield ask
    program.kill()
    program.wait()


@pytest.fixture
def site_ca(tmp_path):
    """Key, chain and CA of a certificate for 127.0.0.1."""
    ca = issuer()
    issued = ca.issue(("127.0.0.1",), datetime.now(UTC))
    paths = [tmp_path / name for name in ("tls.key", "tls.crt", "ca.crt")]
    for path, content in zip(paths, (issued.key, issued.chain, ca.trusted), strict=True):
        path.write_text(content)
    return paths


def test_it_lets_in_who_has_the_password(served):
    status, text = served(f"{USER}:open sesame")
    assert (status, f'{TEMP}{{gpu="0"' in text) == (200, True)
    assert served(f"{USER}:open sesame")[0] == 200  # remembered
    assert served(f"{USER}:open sesame", "/elsewhere")[0] == 404


@pytest.mark.parametrize("login", [None, f"{USER}:sesame", "root:open sesame", ":", f"{USER}:"])
def test_it_lets_in_nobody_else(served, login):
    assert served(login)[0] == 401


def test_flags_that_it_does_not_know_are_refused():
    program = [sys.executable, dcgm_stand_in.__file__, "--kubernetes", "-f", "x", "-a", "y"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "unrecognized arguments: --kubernetes" in ended.stderr
