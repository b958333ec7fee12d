"""The nvidia_driver role: what it refuses before the first connection."""

from __future__ import annotations

import pytest

from rackwright.roles.kernel.options import KernelOptions
from rackwright.roles.nvidia_driver.keys import fingerprint_of
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions, Signing
from tests.unit.roles.driver_sites import FINGERPRINT, KEY, SKU, VERSION, bad_pair, debian
from tests.unit.roles.fake_host import errors_in
from tests.unit.roles.stack_sites import STACK, site, worker

AGAIN = "run: rackwright lock demo.yaml"


def _options(**changes):
    return {"kernel": KernelOptions(), "nvidia_driver": NvidiaDriverOptions(**changes)}


def _refusals(cluster, **changes):
    options = NvidiaDriverOptions(**changes)
    return [*options.problems(cluster), *options.lock_problems(cluster)]


def test_a_known_bad_pair_is_refused_and_can_be_tried(tmp_path):
    cluster = bad_pair(tmp_path, _options())
    ((where, message, hint),) = _refusals(cluster)
    assert where == ""
    assert message == (
        "nvidia-open-kernel-dkms 550.163.01-2 does not build on 6.12.107+deb13-amd64 of debian-13: "
        "pci_resize_resource takes more arguments there (Real builds of the package, 2026-11-20 and, by the role "
        "nvidia_driver on a lab node, 2026-11-21)."
    )
    assert hint == "lock another pair: rackwright lock demo.yaml; a patched one: `known_bad: try`"
    assert _refusals(cluster, known_bad="try") == []


def test_a_locked_kernel_needs_the_role_that_installs_it(tmp_path):
    cluster = debian(tmp_path, {"nvidia_driver": NvidiaDriverOptions()})
    assert _refusals(cluster) == [
        (
            "",
            "The lock has the kernel 6.1.0-50-amd64 for gpu1, but no role of the node installs it.",
            "add `kernel: {}` under `roles`",
        )
    ]
    assert _refusals(debian(tmp_path, _options())) == []


def test_without_a_lock(tmp_path):
    cluster = debian(tmp_path, _options())
    cluster.lock_path.unlink()
    assert _refusals(cluster) == [("", f"The lock file {cluster.lock_path} does not exist.", AGAIN)]
    cluster.lock_path.write_text("version: 7\n")
    assert _refusals(cluster) == [("", f"The lock file {cluster.lock_path} is damaged.", AGAIN)]


@pytest.mark.parametrize(
    ("edit", "message", "hint"),
    [
        (
            ("cluster: test\n", "cluster: other\n"),
            "The lock demo.lock.yaml belongs to the cluster other.",
            AGAIN,
        ),
        (
            ("  source: distribution\n", "  source: distribution\n  cuda: none\n"),
            "The lock demo.lock.yaml was solved for a different gpu_stack section.",
            AGAIN,
        ),
        (
            (f"- sku: {SKU}", "- sku: l40s-8x"),
            f"The lock demo.lock.yaml has no entry for {SKU} on debian-12, e.g. gpu1.",
            AGAIN,
        ),
    ],
)
def test_a_lock_that_does_not_fit(tmp_path, edit, message, hint):
    cluster = debian(tmp_path, _options(), edit=edit)
    assert _refusals(cluster) == [("", message, hint)]


def test_a_lock_without_revisions_is_a_warning_that_names_the_index(tmp_path):
    cluster = debian(tmp_path, _options(), edit=(f"nvidia-smi: {VERSION}-1", f"nvidia-smi: {VERSION}-*"))
    options = NvidiaDriverOptions.model_validate({})
    assert list(options.lock_problems(cluster)) == []
    assert list(options.warnings(cluster)) == [
        (
            "",
            f"The lock has no revision of nvidia-smi {VERSION}-* for {SKU} on debian-12: two nodes could get different ones.",
            f"add the source's indexes to `gpu_stack.package_index`, then {AGAIN}",
        )
    ]
    assert list(options.warnings(debian(tmp_path, _options()))) == []
    cluster.lock_path.unlink()
    assert list(options.warnings(cluster)) == []


def test_no_gpu_stack_and_no_gpus(tmp_path):
    cluster = debian(tmp_path, _options())
    assert _refusals(cluster.model_copy(update={"gpu_stack": None})) == [
        (
            "",
            "The role nvidia_driver installs locked versions, but the cluster file has no section gpu_stack.",
            None,
        )
    ]
    alone = cluster.model_copy(update={"nodes": tuple(node for node in cluster.nodes if node.name != "gpu1")})
    assert _refusals(alone) == [
        ("", "No node of the role nvidia_driver has NVIDIA's GPUs.", "remove the section")
    ]


def test_options_that_contradict_the_stack(tmp_path):
    cluster = debian(tmp_path, _options())
    signing = Signing(key="/a", certificate="/b")
    assert _refusals(cluster, signing=signing) == [
        ("signing", "Without Secure Boot, modules need no signature.", "set gpu_stack.secure_boot"),
    ]


def test_the_repository_s_key(tmp_path):
    cluster = site(tmp_path, _options(), worker("gpu1", 11, SKU))
    found = _refusals(cluster)
    assert [where for where, _, _ in found] == ["repository", "repository_key"]
    assert found[1][2] == (
        "download https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/8793F200.pub, "
        "put it beside the cluster file and name it here"
    )
    mirror = {"repository": "http://mirror.example.com/cuda/", "repository_key": "key.asc"}
    there = "https://developer.download.nvidia.com/compute/cuda/repos/debian13/x86_64/8793F200.pub"
    assert _refusals(cluster, **mirror) == [
        (
            "repository_key",
            "The key key.asc cannot be read: no such file or directory.",
            f"download {there} to this path",
        )
    ]
    (tmp_path / "key.asc").write_text("no key\n")
    assert _refusals(cluster, **mirror) == [
        (
            "repository_key",
            "The key key.asc cannot be read: it is not an armoured OpenPGP public key.",
            f"download {there} to this path",
        )
    ]
    (tmp_path / "key.asc").write_text(KEY)
    assert _refusals(cluster, **mirror) == [
        (
            "repository_key",
            f"The key's fingerprint is {FINGERPRINT}, not 02182E60104FCDC26EAE1B8597A5D4CB8793F200.",
            f"if the mirror signs with its own key, set `repository_fingerprint: {FINGERPRINT}` after comparing it",
        )
    ]
    assert _refusals(cluster, **mirror, repository_fingerprint="A" * 40)[0][2] == (
        "compare `repository_fingerprint` with what the mirror's operator publishes"
    )
    straight = cluster.model_copy(update={"gpu_stack": STACK.model_copy(update={"source": "nvidia"})})
    straight.lock_path.write_text(straight.lock_path.read_text().replace("source: mirror", "source: nvidia"))
    (wrong,) = [
        hint for _, message, hint in _refusals(straight, repository_key="key.asc") if "finger" in message
    ]
    assert wrong == f"this is another key: download {there}"


def test_a_key_is_not_needed_to_lock(tmp_path):
    cluster = site(tmp_path, _options(), worker("gpu1", 11, SKU))
    assert list(NvidiaDriverOptions().problems(cluster)) == []


def test_fingerprints_as_gpg_tells_them():
    assert fingerprint_of(KEY) == FINGERPRINT
    assert fingerprint_of(KEY.replace("\n", "\r\n")) == FINGERPRINT
    with pytest.raises(ValueError, match="not an armoured"):
        fingerprint_of(KEY.replace("PUBLIC", "PRIVATE"))
    damaged = KEY.replace("mDME", "tDME")
    with pytest.raises(ValueError, match="first packet is not a version 4 public key"):
        fingerprint_of(damaged)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"modules": {"coherent_memory": "yes"}}, "Input should be 'numa' or 'driver'"),
        ({"modules": {"profiling": True}}, "Extra inputs are not permitted"),
        ({"repository": "mirror.example.com"}, "Not a valid http or https URL."),
        ({"known_bad": "ignore"}, "Input should be 'refuse' or 'try'"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(NvidiaDriverOptions, given) == [sentence]
