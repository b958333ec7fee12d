"""Single faults by the hundred, systematically: each must make at least one check object.

A fault is put into the machine (a file, a tool's output, an element of the XML) or into the document
(a value missing, null, of another type). What nobody objects to must stand on the list of values
that are shown to people and judged by no check.
"""

from __future__ import annotations

import pickle
import re
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from xml.etree import ElementTree

import pytest

from rackwright.health import absent, records
from rackwright.health.document import Document
from rackwright.health.judge import _run, all_checks, judge
from rackwright.health.probe.main import SECTIONS
from rackwright.status import Status
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import HANGS, MISSING, FakeNode, document
from tests.unit.health.faults import FAULTS, SMI

pytestmark = pytest.mark.slow

MUTATED = ("full", "roce", "mig", "rack", "old", "amd")
GARBAGE = "Segmentation fault\n"

SHOWN_ONLY = {
    r"/sys/class/dmi/id/(sys_vendor|product_name|board_name|bios_date): .*": "shown, judged by no check",
    r"/sys/class/net/\w+/(address|carrier_changes|statistics/rx_dropped): .*": "shown, judged by no check",
    r"/sys/class/net/net0/speed: .*": "no management port is declared in these SKUs",
    r"/sys/class/infiniband/\w+/ports/1/(gids/0|gid_attrs/types/0|pkeys/1): .*": "one of several",
    r"/sys/class/infiniband/\w+/ports/1/(gids|gid_attrs/types)/3: .*": "InfiniBand needs no RoCE v2 GID",
    r"/proc/(driver/nvidia/params|vmstat|uptime|loadavg): .*": "shown, judged by no check",
    r"/proc/\d+/stat: .*": "a process that has ended meanwhile",
    r"/sys/block/md0/md/(level|sync_action): .*": "shown with what is judged",
    r"/sys/bus/pci/devices/0000:04:00.0/.*": "a NIC that no declaration names",
    r"/sys/bus/pci/devices/.*/(device|numa_node): .*": "shown; the GPU's node and kind are judged",
    r"/sys/bus/pci/devices/0000:(1b|0a):00.0/(current|max)_link_speed: .*": "an idle GPU lowers it; its tool reports it",
    r"rack: /sys/devices/system/cpu/cpu0/thermal_throttle/.*": "Arm does not count it",
    r"roce: /sys/class/infiniband/mlx5_0/ports/1/(lid|sm_lid|pkeys/0): .*": "InfiniBand's alone",
    r"/sys/bus/pci/devices/0000:0[01]:01.0/vendor: .*": "a bridge of any maker",
    r"/sys/bus/pci/devices/0000:0[01]:01.0/max_link_\w+: .*": "a device in it is judged by its own maximum then",
    r"/sys/class/(infiniband/\w+/board_id|nvme/\w+/model): garbage": "a name can be any word",
    r"/sys/kernel/iommu_groups/\d/type: gone": "one group less",
    r"old: (/sys/bus/pci/devices/0000:0[01]:01.0/.*|/sys/kernel/iommu_groups/.*|nvidia-smi topo -m: .*)": "no fabric",
    r"/var/lib/rackwright/health/dcgm-diag.json: gone": "a site need not keep a result",
    r"rack: /proc/cpuinfo: .*": "Arm tells no microcode there",
    r"mig: nvidia-smi nvlink -[es]: .*": "no MIG instance uses NVLink",
    r"ipmitool (sdr elist|sel list last \d+): cut short": "a list that does not tell its length; half of the log is UNKNOWN",
    r"ipmitool sel time get: .*": "without the BMC's clock the node's own dates its log",
}
"""What may be broken without a check that objects, and why."""


@dataclass
class Tried:
    """Faults of one kind: how many, and those no check objects to."""

    faults: int = 0
    silent: list[str] = field(default_factory=list)

    def fault(self, label: str, noticed: bool) -> None:
        self.faults += 1
        if not noticed:
            self.silent.append(label)


class Recorder(FakeNode):
    """A machine that remembers what each section read of it."""

    def __init__(self, node: FakeNode) -> None:
        self.__dict__.update(node.__dict__)
        self.seen: set[str] = set()

    def data(self, path, offset, size):
        if path in self.files:
            self.seen.add(path)
        return super().data(path, offset, size)

    def start(self, arguments, seconds):
        if " ".join(arguments) in self.commands:
            self.seen.add(" ".join(arguments))
        return super().start(arguments, seconds)


def readings(node):
    """section -> files and commands it read."""
    found = {}
    for section in SECTIONS:
        recorder = Recorder(node)
        document(recorder, {"sections": {}}, (section,))
        found[section] = recorder.seen
    return found


def objects(base, raw, sections):
    """Whether some check that reads one of these sections objects."""
    for check in all_checks():
        concerned = set(sections).intersection(check.reads) and check.applies(base.expected)
        if concerned and any(
            one.status not in (Status.PASS, Status.OUT_OF_SCOPE)
            for one in _run(check, base.expected, Document(raw))
        ):
            return True
    return False


def one_per_kind(names, files=()):
    """One of each kind of name, numbers aside; PCI devices are of a kind when their class is the same."""
    kinds = {}
    for name in sorted(names):
        kind = re.sub(r"[0-9a-f]*\d[0-9a-f]*", "N", name)
        if name.startswith("/sys/bus/pci/devices/"):
            kind += str(files[name.rpartition("/")[0] + "/class"])
        kinds.setdefault(kind, name)
    return kinds.values()


def machine_mutations(base, name):
    """(label, document, sections) of each fault in a file or command."""
    node = base.node
    by_key: dict[str, list[str]] = {}
    for section, keys in readings(node).items():
        for key in keys:
            by_key.setdefault(key, []).append(section)
    for key in one_per_kind(by_key, node.files):
        said = node.files.get(key, node.commands.get(key))
        wheres = tuple(by_key[key])
        if key in node.files:
            kinds = {"gone": None, "empty": "", "garbage": GARBAGE}
        else:
            text = str(said)
            kinds = {"missing": MISSING, "hangs": HANGS, "fails": (1, "", "it broke"), "garbage": GARBAGE}
            if len(text) > 8:
                kinds["cut short"] = text[: len(text) // 2 + 1]
                kinds["empty"] = ""
        for kind, content in kinds.items():
            broken = node.with_fault(lambda other, key=key, content=content: break_it(other, key, content))
            yield f"{name}: {key}: {kind}", document(broken, healthy_document(name), wheres), wheres


def break_it(node, key, content):
    if content is None:
        node.drop(key)
    elif key in node.files:
        node.put(key, content)
    else:
        node.commands[key] = content


@cache
def healthy_document(name):
    return document(BASES[name].node)


@cache
def tried_on_the_machine(name):
    tried = Tried()
    for label, raw, sections in machine_mutations(BASES[name], name):
        tried.fault(label, objects(BASES[name], raw, sections))
    return tried


@pytest.mark.parametrize("name", MUTATED)
def test_whatever_is_broken_on_the_machine_is_noticed(name):
    unexplained = [
        label
        for label in tried_on_the_machine(name).silent
        if not any(re.fullmatch(rf"(\w+: )?({kind})", label) for kind in SHOWN_ONLY)
    ]
    assert unexplained == []


XML_SHOWN_ONLY = {
    "timestamp", "cuda_version", "product_architecture", "product_name", "serial", "minor_number", "pci/pci_bus_id",
    "mig_devices", "fb_memory_usage/reserved", "fb_memory_usage/free", "bar1_memory_usage/used", "processes",
    "remapped_rows/remapped_row_corr", "temperature/gpu_temp_slow_tlimit_threshold",
    "aggregate/sram_correctable", "aggregate/dram_correctable", "temperature/gpu_temp_max_mem_tlimit_threshold",
    "health/route_recovery_in_progress", "health/route_unhealthy", "health/access_timeout_recovery",
    "health/incorrect_configuration",
}  # fmt: skip
"""Shown to people, judged by no check; of the fabric's health its summary and bandwidth are."""
XML_OTHERWISE = {
    "gpu_power_readings/average_power_draw", "gpu_power_readings/instant_power_draw",
    "temperature/gpu_temp_max_mem_threshold",
}  # fmt: skip
"""Without it another value takes its place: the other power draw, the highest temperature of other boards."""
XML_FIELDS = {
    "fabric/health": "fabric.summary", "fabric/health/bandwidth": "fabric.bandwidth",
    "fabric/health/summary": "fabric.summary", "ecc_errors/unrepairable_memory": "ecc.unrepairable_memory",
}  # fmt: skip
"""Elements whose absence the table of absences excuses: its field."""
XML_REASONS = re.compile("clocks_event_reasons/.*_(gpu_idle|clocks_setting|sw_power_cap|sync_boost)")
"""Reasons that are no fault."""
XML_NOT_THERE = {
    "full": {"retired_pages", "link_widths/max_link_width"},
    "dgx-a100": {"retired_pages", "link_widths/max_link_width", "fabric", "temperature/gpu_temp_tlimit"},
    "t4-4x": {
        "fabric", "temperature/gpu_temp_tlimit", "temperature/memory_temp", "bar1_memory_usage", "mig_mode", "remapped_rows",
    },
}  # fmt: skip
"""What this kind of GPU does not have, or what its SKU declares instead."""


def xml_mutations(tree):
    """(path of the element, the tree with that element broken in one way) of the first GPU."""
    gpu = tree.find("gpu")
    paths = {}

    def walk(node, above):
        for child in node:
            paths[child] = [*above, child.tag]
            walk(child, paths[child])

    walk(gpu, [])
    for at, (element, path) in enumerate(paths.items()):
        kinds = (
            ["gone"]
            if len(element) or (element.text or "").strip() in ("N/A", "")
            else ["gone", "N/A", "[Unknown Error]"]
        )
        for kind in kinds:
            copy = deepcopy(tree)
            broken = list(copy.find("gpu").iter())[1:][at]
            if kind == "gone":
                next(one for one in copy.iter() if broken in list(one)).remove(broken)
            else:
                broken.text = kind
            yield "/".join(path), copy


@cache
def tried_in_the_xml(name):
    base = BASES[name]
    healthy = document(base.node)
    tree = ElementTree.fromstring(str(base.node.commands[SMI]))
    for gpu in tree.findall("gpu")[1:]:
        tree.remove(gpu)
    tree.find("attached_gpus").text = "1"
    one = replace(base, expected=replace(base.expected, gpus=replace(base.expected.the_gpus(), count=1)))
    tried = Tried()
    for path, broken in xml_mutations(tree):
        text = ElementTree.tostring(broken, encoding="unicode")
        node = base.node.with_fault(lambda node, text=text: node.commands.update({SMI: text}))
        tried.fault(path, objects(one, document(node, healthy, ("gpus",)), ("gpus",)))
    return tried


@pytest.mark.parametrize("name", XML_NOT_THERE)
def test_every_element_of_the_xml_is_needed_or_listed(name):
    known = XML_SHOWN_ONLY | XML_OTHERWISE | XML_NOT_THERE[name]
    silent = [path for path in tried_in_the_xml(name).silent if not excused(name, XML_FIELDS.get(path, ""))]
    unexplained = {path for path in silent if not XML_REASONS.fullmatch(path) and not known & tails(path)}
    assert unexplained == set()


def excused(name, field):
    """Whether the table of absences has this field for the GPUs of a base."""
    base, told = BASES[name], Document(healthy_document(name))
    return absent.reason(field, absent.shown_by(base.expected, told, told.gpus.gpus[0])) is not None


def tails(path):
    """A path, and every path above it: a part of what is not there is not there either."""
    steps = path.split("/")
    return {
        "/".join(steps[first:last])
        for first in range(len(steps))
        for last in range(first + 1, len(steps) + 1)
    }


def leaves(value, place):
    """Every value of a document with its place."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{place}[{index}]")
    yield place


def at_place(raw, place):
    """The container of a place, and its key there."""
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", place)]
    section, *inner = steps
    holder = raw["sections"][section]["data"]
    for step in inner[:-1]:
        holder = holder[step]
    return holder, inner[-1]


@cache
def tried_in_the_document(name):
    base, healthy = BASES[name], healthy_document(name)
    records.TRACE = set()
    try:
        judge(base.expected, healthy)
        read = records.TRACE
    finally:
        records.TRACE = None
    pickled = {section: pickle.dumps(data) for section, data in healthy["sections"].items()}
    tried = Tried()
    for place in one_per_kind(read):
        section = place.split(".")[0]
        for kind in ("gone", "null", "another type"):
            raw = {**healthy, "sections": dict(healthy["sections"])}
            raw["sections"][section] = pickle.loads(pickled[section])
            holder, key = at_place(raw, place)
            if kind == "gone":
                del holder[key]
            elif kind == "null":
                if holder[key] is None:
                    continue
                holder[key] = None
            else:
                holder[key] = {"odd": ["value"]} if not isinstance(holder[key], dict) else "odd"
            tried.fault(f"{place}: {kind}", objects(base, raw, (section,)))
    return tried


@pytest.mark.parametrize("name", MUTATED)
def test_every_value_a_check_reads_is_missed_when_it_is_not_there(name):
    allowed = re.compile(
        r"pci\.devices\[\d+\]\.(aer|slot)[._]\w+: null|mounts\.mounts\[\d+\]\.why.*|.*\.smart_why: .*|nvlink\.errors_why: .*"
        r"|infiniband\..*\.gids.*|arrays\..*\.action: null|gpus\..*\.(slowdown_c|margin_c|memory_max_c|recovery_action): null"
        r"|network\.interfaces\[\d+\]\.speed_mbps: null|driver\.open: null|amd_gpus\..*\.bad_page_threshold: null"
        r"|system\.uptime_s: .*|dcgm_diag\.at: null|links\.tool: null|bmc\.(tool|device|clock|uptime_s|log\.percent): null"
        r"|bmc\.events\[\d+\]\.at: null|bmc\.sensors\[\d+\]\.(entity|unit): null"
        + (r"|gpus\.gpus\[0\]\.mig.*" if name == "old" else "")
    )
    silent = [one for one in tried_in_the_document(name).silent if not allowed.fullmatch(one)]
    fields = {one: re.fullmatch(r"gpus\.gpus\[0\]\.(.+): (gone|null)", one) for one in silent}
    assert [one for one, field in fields.items() if field is None or not excused(name, field.group(1))] == []


@pytest.mark.parametrize(
    "raw",
    [
        None, [], "", 7, {}, {"schema": "other"}, {"schema": "rackwright-probe", "version": 2, "sections": {}},
        {"schema": "rackwright-probe", "version": 1}, {"schema": "rackwright-probe", "version": 1, "sections": []},
        {"schema": "rackwright-probe", "version": 1, "sections": {}},
        {"schema": "rackwright-probe", "version": 1, "node": "gpu001", "sections": {"gpus": {"ok": True, "data": []}}},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_document_is_unknown_throughout(raw):
    results = judge(BASES["full"].expected, raw)
    assert len(results) > 100
    assert {one.status for one in results} == {Status.UNKNOWN}


def test_the_counts(capsys):
    """At least 300 faults, and how many of which kind; what the tests above tried is not tried again."""
    machine = [tried_on_the_machine(name) for name in MUTATED]
    xml = [tried_in_the_xml(name) for name in XML_NOT_THERE]
    in_document = [tried_in_the_document(name) for name in MUTATED]
    places = (machine, xml, in_document)
    on_machine, in_xml, in_documents = (sum(tried.faults for tried in place) for place in places)
    silent = sum(len(tried.silent) for place in places for tried in place)
    total = len(FAULTS) + on_machine + in_xml + in_documents
    with capsys.disabled():
        print(
            f"\n{len(all_checks())} checks; {len(FAULTS)} seeded faults, each failed by its check; "
            f"{total} single faults in all ({on_machine} on the machine, {in_xml} in the XML, "
            f"{in_documents} in the document): {total - silent} noticed, "
            f"{silent} in values that no check judges"
        )
    assert total >= 300
