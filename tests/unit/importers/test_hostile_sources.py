"""Sources with anything in them: refused with a message, or a file whose marks are precisely what `validate` reports."""

from __future__ import annotations

import csv
import json
import random

import pytest

from tests.unit.importers.filling import marked_lines, mistake_lines
from tests.unit.importers.netbox_documents import device, page
from tests.unit.importers.test_csv_list import HEADER, site

pytestmark = pytest.mark.slow
HOSTILE = (
    *(
        "",
        " ",
        "-",
        "null",
        "~",
        "yes",
        "1e3",
        "0x1f",
        "0o7",
        "12:34:56",
        "2026-01-01",
        "a: b",
        "a #b",
        "&a",
        "*a",
        "!!str x",
    ),
    *(
        "{x: 1}",
        "[1]",
        "'",
        '"',
        "|",
        ">",
        "%a",
        "@a",
        "`a`",
        "a\tb",
        "a\nb",
        "a\r\nroles: {}",
        "\x00",
        "\x1b[2J",
        "\u202eabc",
    ),
    *(
        "\u200b",
        "\ufeffx",
        "é",
        "日本",
        "x" * 300,
        "-" * 70,
        "..",
        "a..b",
        "10.0.0.1",
        "10.0.0.256",
        "::1",
        "10.1.1.1/0",
        "10.1.1.1/33",
    ),
    *(
        "127.0.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "-1",
        "201",
        "1.5",
        "1e400",
        "nan",
        "inf",
        "U7",
    ),
    *(
        "head",
        "worker",
        "DGX H100",
        "ubuntu-24.04",
        "# MISSING: x; e.g. `y`",
        "AGE-SECRET-KEY-1QQ",
        "-----BEGIN PRIVATE KEY-----",
    ),
)


def check(result, out):
    """No traceback, no control character on the terminal; marks and mistakes agree."""
    assert result.status in (0, 1)
    assert result.err.startswith("error: ") is (result.status == 1)
    assert not {one for one in result.err if ord(one) < 32 and one != "\n"}
    assert "\u202e" not in result.err
    if result.status == 0:
        text = out.read_text()
        assert mistake_lines(out, text) == marked_lines(text)


@pytest.mark.parametrize("column", HEADER)
def test_every_column_with_every_text(rackwright, tmp_path, column):
    for index, text in enumerate(HOSTILE):
        rows = site(4)
        rows[5][column] = text
        source, out = tmp_path / f"{index}.csv", tmp_path / f"{index}.yaml"
        with source.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, HEADER)
            writer.writeheader()
            writer.writerows(rows)
        check(rackwright("import", "csv", source, "-o", out), out)


@pytest.mark.parametrize(
    "key",
    ["name", "role", "model", "maker", "primary", "oob", "rack", "position", "serial", "platform", "status"],
)
def test_every_field_of_netbox_with_every_text(rackwright, tmp_path, key):
    for index, text in enumerate(HOSTILE):
        devices = [
            device(1, "head1", role="head", primary="10.60.0.1/16"),
            device(2, **{"name": "w1", "primary": "10.60.0.11/16", "rack": "r1", "position": 1.0, key: text}),
            device(3, "w2", primary="10.60.0.12/16", rack="r1", position=2.0),
        ]
        source, out = tmp_path / f"{index}.json", tmp_path / f"{index}.yaml"
        source.write_text(json.dumps(page(devices)))
        check(rackwright("import", "netbox", source, "-o", out), out)


@pytest.mark.parametrize(
    "variable",
    [
        "ansible_host",
        "ansible_user",
        "ansible_port",
        "rack",
        "serial",
        "mac",
        "bmc_ip",
        "model",
        "os",
        "slurm_cluster_name",
        "dns_domain",
        "ansible_ssh_common_args",
        "ansible_ssh_private_key_file",
    ],
)
def test_every_variable_with_every_text(rackwright, tmp_path, variable):
    for index, text in enumerate(HOSTILE):
        source, out = tmp_path / f"{index}.yml", tmp_path / f"{index}.yaml"
        hosts = {f"n{number}": {"ansible_host": f"10.0.0.{number}", variable: text} for number in (1, 2)}
        hosts["n2"] = {"ansible_host": "10.0.0.2"}
        source.write_text(
            json.dumps(
                {"slurm-master": {"hosts": {"n1": hosts["n1"]}}, "slurm-node": {"hosts": {"n2": hosts["n2"]}}}
            )
        )
        check(rackwright("import", "ansible", source, "-o", out), out)


def test_random_bytes(rackwright, tmp_path):
    dice = random.Random(11)
    for index in range(150):
        source, out = tmp_path / f"{index}.ini", tmp_path / f"{index}.yaml"
        letters = "[]:=#;'\"n1 \t\\{}!&*-\n" if index % 2 else "".join(map(chr, range(256)))
        source.write_bytes("".join(dice.choices(letters, k=200)).encode("utf-8" if index % 3 else "latin-1"))
        for kind in ("ansible", "csv", "netbox"):
            out.unlink(missing_ok=True)
            check(rackwright("import", kind, source, "-o", out), out)
