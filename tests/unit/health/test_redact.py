"""A redacted document holds none of the names and is judged like the one it was made of."""

from __future__ import annotations

import json
import re
import time

import pytest

from rackwright.boundary import Refused
from rackwright.cli import run as cli
from rackwright.health.declare import expected_of_sku
from rackwright.health.document import Document
from rackwright.health.history import counters_of, updated
from rackwright.health.judge import judge
from rackwright.health.redact import Redactor
from rackwright.health.registry import CHECKS
from rackwright.health.run import FleetHealth, health
from tests.factories import make_cluster, make_node
from tests.unit.health.bases import BASES, SKUS
from tests.unit.health.fake_node import document
from tests.unit.health.faults import FAULTS, drop_gpu
from tests.unit.health.test_run import Shell, told

KEY = b"a key of the tests"
SECRETS = ("gpu001", "ada", "python3", "nfs1", "10.9.0.11", "02:00:00:00:00:01", "a088:c203:00ab:0001", "1650000000000",
           "cluster.example", "qwen-train", "4b1f2c9e-1a2b-4c3d-8e9f-0a1b2c3d4e5f", "41121@10.4.3.2")  # fmt: skip
LINES = {
    "NVRM: Xid (PCI:0000:1b:00): 31, pid=41121, name=python3, Ch 00000008": "name=process-",
    "python3 invoked oom-killer: gfp_mask=0x1, order=0": "process-",
    "Memory cgroup out of memory: Killed process 41121 (python3) total-vm:9kB, UID:1000 pgtables:1kB": "(process-",
    "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/slurm/uid_1000/job_5/step_0,task=python3,pid=1,uid=1000": "task=process-",
    "INFO: task python3:4242 blocked for more than 122 seconds.": "task process-",
    "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4242]": "[process-",
    "EXT4-fs error (device md1): ext4_lookup:1855: inode #12: comm python3: iget: bad extra_isize": "comm process-",
    "nfs: server nfs1 not responding, still trying": "server host-",
    "nfs: server nfs1.cluster.example not responding, still trying": "server host-",
    "LustreError: 11-0: scratch-OST0001-osc: operation ost_read to node 10.4.3.2@tcp failed": "198.1",
    "python3[4242]: segfault in /home/ada/qwen-train/libfoo.so": "/home/path-",
    "gpu001 kernel: mounted filesystem 4b1f2c9e-1a2b-4c3d-8e9f-0a1b2c3d4e5f r/w": "node-",
}


def redacted(raw):
    return Redactor(KEY).document(raw)


def verdict(expected, raw):
    return [(one.check, one.status, one.action) for one in judge(expected, raw)]


@pytest.fixture(scope="module")
def documents():
    return {name: document(base.node) for name, base in BASES.items()}


@pytest.mark.parametrize("name", BASES)
def test_the_verdict_is_the_same(name, documents):
    expected = expected_of_sku(BASES[name].sku)
    assert verdict(expected, redacted(documents[name])) == verdict(expected, documents[name])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_the_verdict_over_a_fault_is_the_same(fault, documents):
    base, reads = BASES[fault.base], CHECKS[fault.check].reads
    expected = expected_of_sku(base.sku)
    raw = document(base.node.with_fault(fault.mutate), documents[fault.base], reads)
    assert verdict(expected, redacted(raw)) == verdict(expected, raw)


@pytest.fixture(scope="module")
def named(documents):
    """A node whose log, mounts and processes name people and machines."""
    node = BASES["full"].node.with_fault(lambda node: node.log(*LINES))
    node.put(
        "/proc/cmdline",
        "BOOT_IMAGE=/boot/vmlinuz root=UUID=4b1f2c9e-1a2b-4c3d-8e9f-0a1b2c3d4e5f ip=10.9.0.11 iommu=pt",
    )
    node.put("/proc/4711/stat", "4711 (python3) D 0 0 0")
    raw = document(node)
    raw["node"] = raw["sections"]["system"]["data"]["hostname"] = "gpu001.cluster.example"
    raw["sections"]["history"]["data"]["snapshots"] = updated([], counters_of(Document(raw)), raw["taken_at"])
    raw["sections"]["clock"] = {"ok": False, "why": "`chronyc` says: 10.4.3.2: gpu001 is not allowed"}
    raw["sections"]["mounts"]["data"]["mounts"].append(
        {"target": "/home/ada/qwen-train", "source": "nfs1:/export/ada", "type": "nfs4", "why": None}
    )
    return raw


def test_no_name_is_left(named):
    text = json.dumps(redacted(named))
    before = json.dumps(named)
    for secret in SECRETS:
        assert secret in before or secret == "41121@10.4.3.2", f"{secret} is not in the document"
        assert not re.search(rf"(?<![\w]){re.escape(secret)}(?![\w])", text), secret


@pytest.mark.parametrize("line", LINES)
def test_kernel_lines_keep_what_is_judged(line, named):
    sentence = redacted({**named, "extra": line})["extra"]
    assert LINES[line] in sentence
    assert not [secret for secret in SECRETS if re.search(rf"\b{re.escape(secret)}\b", sentence)]
    first = re.match(r"\W*(?:gpu001 |python3\S* )?(\w+)", line)[1]
    assert first in sentence


def test_what_is_judged_by_is_kept(named):
    kept = redacted(named)["sections"]
    for name in ("pci", "driver", "packages", "cpu", "memory", "topology", "nvlink", "arrays"):
        assert kept[name] == named["sections"][name], name
    gpus, before = kept["gpus"]["data"]["gpus"], named["sections"]["gpus"]["data"]["gpus"]
    for now, then in zip(gpus, before, strict=True):
        assert {key for key in then if now[key] != then[key]} <= {"uuid", "serial"}
    assert gids(kept) != gids(named["sections"])
    assert [gid[:20] for gid in gids(kept)] == [gid[:20] for gid in gids(named["sections"])]


def gids(sections):
    devices = sections["infiniband"]["data"]["devices"]
    return [gid["gid"] for one in devices for port in one["ports"] for gid in port["gids"]]


def test_counters_of_earlier_passes_belong_to_the_same_gpus(named):
    after = Document(redacted(named))
    assert set(after.snapshots[0]["changed"]) == set(counters_of(after))


def test_pseudonyms_are_stable_within_an_export_and_of_no_use_in_another(named):
    one, other = Redactor(), Redactor()
    assert one.document(named) == one.document(named)
    assert one.document(named) != other.document(named)
    names = {one.word("node", f"gpu{n:03}") for n in range(500)}
    assert len(names) == 500


@pytest.mark.parametrize(
    "value", ["GPU-0fa1b2c3-1a2b-4c3d-8e9f-0a1b2c3d4e5f", "1650000000000", "S6XYNA0T123456", "a088:c203:00ab:0001", "02:00:5e:10:00:01"]
)  # fmt: skip
def test_an_identity_keeps_its_shape(value):
    def shape(text):
        return (
            re.sub("[0-9a-f]", "x", text)
            if ":" in text or "-" in text
            else re.sub("[A-Z]", "A", re.sub(r"\d", "9", text))
        )

    made = Redactor(KEY).shaped(value)
    assert (made != value, shape(made)) == (True, shape(value))


@pytest.mark.parametrize("value", ["0000:0000:0000:0000", "N/A", "0", ""])
def test_nothing_set_stays_nothing_set(value):
    assert Redactor(KEY).document({"uuid": value})["uuid"] == value or value == "N/A"


@pytest.mark.parametrize(
    "value",
    ["/dev/md0", "/var/lib", "/", "96.00.A5.00.01", "28.43.2566", "G520.0200.00.05", "10.20.30.40", "0000:1b:00.0",
     "198.18.3.4", "xfs", "IB/RoCE v1", "tmpfs"],
)  # fmt: skip
def test_versions_devices_and_folders_of_the_system_stay(value):
    key = "firmware" if value.count(".") == 3 and value[0] == "1" else "name"
    assert Redactor(KEY).document({"sections": {"mounts": {key: value}}})["sections"]["mounts"][key] == value


def fleet_of(count):
    sku = SKUS["dgx-h100"].sku
    return make_cluster(
        *[
            make_node(f"gpu{n}", n, sku=sku, platform="bare-metal", primary=n == 1)
            for n in range(1, count + 1)
        ]
    )


def test_the_files_of_an_export_name_no_node(tmp_path):
    health(
        fleet_of(2),
        shell=Shell({"gpu1": told("gpu1"), "gpu2": told("gpu2", drop_gpu(3))}),
        save=tmp_path,
        redact=True,
    )
    found = sorted(tmp_path.iterdir())
    assert all(re.fullmatch(r"node-[0-9a-f]{8}\.json", path.name) for path in found)
    statuses = [cli(["health", "--document", str(path), "--sku", "dgx-h100"]) for path in found]
    assert sorted(statuses) == [0, 3]


def test_redact_without_a_folder_is_refused(capsys):
    assert cli(["health", "c.yaml", "--redact"]) == 64
    assert "--redact needs FILE and --save DIR" in capsys.readouterr().err


def exported(folder, **answers):
    """gpu1 answers otherwise; what was exported, and why something was not."""
    said = {"gpu1": told("gpu1"), "gpu2": told("gpu2"), "gpu3": told("gpu3"), **answers}
    found = health(fleet_of(3), shell=Shell(said), save=folder, redact=True)
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}, found.not_saved


def with_hosts(name, hosts):
    lists = [[{"hostname": host} for host in hosts[at : at + 4000]] for at in range(0, len(hosts), 4000)]
    return json.dumps({**json.loads(told(name)), "more": lists})


def test_a_node_that_names_too_many_hosts_keeps_no_other_from_being_written(tmp_path):
    files, not_saved = exported(tmp_path, gpu1=with_hosts("gpu1", [f"h{n}" for n in range(11_000)]))
    assert (len(files), not_saved) == (2, {"gpu1": "it names more than 100 hosts"})


def test_what_a_node_calls_itself_changes_no_other_document(tmp_path):
    hostile = with_hosts("gpu1", ["sections", "data", "ok", "gpus", "Active", "rackwright-probe"])
    files, not_saved = exported(tmp_path, gpu1=hostile)
    assert (len(files), not_saved) == (3, {})
    assert sum(one.get("schema") == "rackwright-probe" for one in files.values()) == 2
    assert all({"gpus", "system"} <= set(one["sections"]) for one in files.values())


def test_each_node_is_a_pseudonym_in_the_documents_of_the_others(tmp_path):
    first = {**json.loads(told("gpu1")), "more": "gpu3.cluster.example does not answer gpu1"}
    files, _ = exported(tmp_path, gpu1=json.dumps(first))
    (text,) = [one["more"] for one in files.values() if "more" in one]
    assert re.fullmatch(r"node-[0-9a-f]{8} does not answer node-[0-9a-f]{8}", text)


@pytest.mark.parametrize("name", ["a b", "x" * 254, ".", ".example", "a\nb", "a/b", "(none)"])
def test_a_name_that_no_host_can_have_is_refused(name):
    with pytest.raises(Refused, match="it names a host"):
        Redactor().document({"hostname": name})


def test_a_document_that_is_not_written_is_reported(monkeypatch, capsys, tmp_path):
    found = FleetHealth("x", (), {"gpu1": "it names more than 100 hosts"})
    monkeypatch.setattr("rackwright.cli.health._probed", lambda *_, **__: found)
    cli(["health", "c.yaml", "--save", str(tmp_path), "--redact", "--json"])
    told_apart = capsys.readouterr()
    assert told_apart.err == (
        f"gpu1: its document was not written to {tmp_path}: it names more than 100 hosts\n"
    )
    assert json.loads(told_apart.out)["not_saved"] == {"gpu1": "it names more than 100 hosts"}


@pytest.mark.parametrize(
    ("text", "redacted_text"),
    [
        ("gpu1 gpu11 gpu1-x x-gpu1 x.gpu1 gpu1_", "NODE gpu11 gpu1-x x-gpu1 x.NODE gpu1_"),
        ("gpu1.cluster.example.: gpu1.5 gpu1", "NODE: NODE.5 NODE"),
        ("gpu1.3site.example gpu1.4site.example", "NODE NODE.4site.example"),
        ("gpu1.GPU1 (gpu1)", "NODE.NODE (NODE)"),
    ],
)
def test_a_host_is_found_as_a_whole_word_with_its_domain(text, redacted_text):
    names = {"node": "gpu1", "more": [{"hostname": "gpu1.3site.example"}, {"hostname": "GPU1"}]}
    found = redacted({**names, "text": text})["text"]
    assert re.sub("node-[0-9a-f]{8}", "NODE", found) == redacted_text


def test_a_key_of_the_format_stays_although_a_host_has_its_name():
    found = redacted({"node": "data", "data": {"data": 1, "of data": 2}})
    assert set(found["data"]) == {"data", f"of {found['node']}"}


@pytest.mark.parametrize(
    "seed", ["a", "a.", "a-", "h1.", "h1 ", "Killed process 1 (", "stuck for 1s! [a", "1a:", "/a"]
)
def test_a_long_text_takes_no_longer_than_its_length_asks(seed):
    raw = {"more": [{"hostname": f"h{n}"} for n in range(100)], "text": seed * (40_000 // len(seed))}
    began = time.process_time()
    redacted(raw)
    assert time.process_time() - began < 2
