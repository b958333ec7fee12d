"""Declared firmware: every mistake at once, with the exact words."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.model.firmware import Release, matches
from tests.unit.clusterfile.base_file import change, problems_of

SHA = "0" * 64
GIVEN = """\
firmware:
  own-node:
    bios: {{version: U58 v2.44 (01/17/2025), file: fw/bios.bin, sha256: '{sha}'}}
    bmc: '7.20'
    components:
      HGX_FW_GPU_*: {{version: '97.10', url: "http://images.example.com/hgx.fwpkg"}}
      ConnectX-7*: 28.43.1014
    bios_attributes: {{SR-IOVSupport#00A6: Enabled, NumaPerSocket: 4, Smt: true}}

burnin:
"""
AS_THE_REGISTRY = "use the type from the vendor's attribute registry"


def _file(section: str) -> str:
    section = section.replace("SHA", SHA)
    return change(("burnin:\n", f"firmware:\n  own-node: {section}\n\nburnin:\n"))


def _mistakes(folder: Path, section: str) -> list[tuple[str, str, str | None]]:
    return [(one.path, one.message, one.hint) for one in problems_of(folder, _file(section))]


def test_a_correct_section(tmp_path):
    (tmp_path / "fw").mkdir()
    (tmp_path / "fw" / "bios.bin").touch()
    file = tmp_path / "demo.yaml"
    file.write_text(change(("burnin:\n", GIVEN.format(sha=SHA))))
    (found,) = load_cluster(file).firmware.values()
    assert found.bios == Release(
        version="U58 v2.44 (01/17/2025)", file=tmp_path / "fw" / "bios.bin", sha256=SHA
    )
    assert found.bmc == Release(version="7.20")
    assert found.components["HGX_FW_GPU_*"].has_image
    assert not found.components["ConnectX-7*"].has_image
    assert list(found.releases) == ["bmc", "bios", "HGX_FW_GPU_*", "ConnectX-7*"]
    assert [type(value) for value in found.bios_attributes.values()] == [str, int, bool]


@pytest.mark.parametrize(
    ("section", "path", "message", "hint"),
    [
        (
            "{bios: 2.7}",
            "bios",
            "Expected a mapping.",
            "write `key: value` lines below it",
        ),
        ("{bios: {url: 'http://x/y'}}", "bios.version", "The key `version` is missing.", None),
        (
            "{bmc: {version: '1', file: fw/bmc.bin, sha256: 'SHA'}}",
            "bmc.file",
            "{folder}/fw/bmc.bin does not exist.",
            "the path is relative to the cluster file",
        ),
        (
            "{bios: {version: '1', file: demo.yaml}}",
            "bios",
            "`file` and `sha256` must be set together.",
            "`sha256sum FILE` prints the digest",
        ),
        (
            "{bios: {version: '1', sha256: 'SHA'}}",
            "bios",
            "`file` and `sha256` must be set together.",
            "`sha256sum FILE` prints the digest",
        ),
        (
            "{bios: {version: '1', url: 'http://x/y', file: demo.yaml, sha256: 'SHA'}}",
            "bios",
            "The image has both a `file` and a `url`.",
            "keep one of them",
        ),
        (
            "{bios: {version: '1', url: 'ftp://x/y'}}",
            "bios.url",
            "Not a valid http or https URL.",
            "e.g. `http://mirror.example.com/debian`",
        ),
        (
            "{bios: '-1'}",
            "bios",
            "Not a valid firmware version: letters, digits, spaces and `._+~:()/,-`, at most 96 characters.",
            "e.g. `U58 v2.44 (01/17/2025)`",
        ),
        (
            "{components: {'*': '1'}}",
            'components["*"]',
            "`*` matches every component.",
            "e.g. `HGX_FW_GPU_*`",
        ),
        (
            "{components: {GPU_*: '1', gpu_0: '2'}}",
            "components.gpu_0",
            "`gpu_0` and `GPU_*` match the same component.",
            "declare each component once",
        ),
        (
            "{components: {'[ab]': '1'}}",
            'components["[ab]"]',
            "Not a valid component id or name: letters, digits, spaces, `._+:()/,#-`, and the wildcards `*` and `?`.",
            "e.g. `HGX_FW_GPU_*`",
        ),
        (
            "{bios_attributes: {Smt: 1.5}}",
            "bios_attributes.Smt",
            "Expected text, a whole number, or true or false.",
            AS_THE_REGISTRY,
        ),
        (
            "{bios_attributes: {Smt: [a]}}",
            "bios_attributes.Smt",
            "Expected text, a whole number, or true or false.",
            AS_THE_REGISTRY,
        ),
        (
            "{bios_attributes: {Smt: ü}}",
            "bios_attributes.Smt",
            "Not a valid BIOS attribute value: at most 256 ASCII characters.",
            "e.g. `Enabled`",
        ),
        (
            "{bios_attributes: {'a b': x}}",
            'bios_attributes["a b"]',
            "Not a valid BIOS attribute name: letters, digits and `_.:#-`, as in the vendor's attribute registry.",
            "e.g. `ProcVirtualization`",
        ),
        ("{nic: '1'}", "nic", "Unknown key `nic`.", "known keys: bios, bmc, components, bios_attributes"),
    ],
)
def test_a_mistake(tmp_path, section, path, message, hint):
    found = _mistakes(tmp_path, section)
    assert found == [(f"firmware.own-node.{path}", message.format(folder=tmp_path), hint)]


def test_a_password_has_no_place_there(tmp_path):
    (found,) = _mistakes(tmp_path, "{bios_attributes: {SetupPassword: hunter2}}")
    assert found[:2] == ("firmware.own-node.bios_attributes.SetupPassword", "Secret in plaintext.")


def test_a_sku_that_is_unknown(tmp_path):
    text = change(("burnin:\n", "firmware:\n  own-nod: {bios: '1'}\n\nburnin:\n"))
    (found,) = problems_of(tmp_path, text)
    assert (found.path, found.message, found.hint) == (
        "firmware.own-nod",
        "SKU own-nod does not exist.",
        "did you mean `own-node`?",
    )


def test_all_mistakes_at_once(tmp_path):
    found = _mistakes(
        tmp_path,
        "{bios: {version: '1', file: no, sha256: x}, components: {'*': '1', a: {version: '1', nope: 1}, A: '2'}, "
        "bios_attributes: {Smt: null}}",
    )
    assert [path.removeprefix("firmware.own-node.") for path, *_ in found] == [
        "bios.file",
        "bios.sha256",
        'components["*"]',
        "components.a.nope",
        "components.A",
        "bios_attributes.Smt",
    ]


@pytest.mark.parametrize(
    ("glob", "text", "named"),
    [
        ("GPU_*", "gpu_0", True),
        ("GPU_?", "GPU_10", False),
        ("NIC", "NIC.1", False),
        ("*x*", "ConnectX", True),
    ],
)
def test_globs(glob, text, named):
    assert matches(glob, text) is named
