"""What the rdma role sets of cards at each boot: PCIe read requests, and the CPUs of interrupts."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.types import Platform
from rackwright.roles.rdma import at_boot
from rackwright.roles.rdma.verify import CHECKS
from tests.unit.roles.fake_facts import answer
from tests.unit.roles.fake_host import claimed, content, planned
from tests.unit.roles.test_rdma import made
from tests.unit.roles.test_rdma_checks import REQUESTS, check

PCIS = ("0000:18:00.0", "0000:2a:00.0")
INTERRUPTS = "HCA interrupts are on local CPUs"
LOCAL = {"interrupts": "local"}


def operations(**options):
    cluster, node = made(**options)
    return planned(cluster, node)


def test_nothing_is_set_unless_it_is_declared():
    names = {operation.name for operation in operations().operations}
    assert not any("devices at boot" in name or "interrupts" in name for name in names)


def test_read_requests_and_interrupts_are_set_by_one_unit():
    written = content(operations(max_read_request=4096), at_boot.SCRIPT)
    assert written.splitlines()[4:6] == [
        "setpci -s 0000:18:00.0 CAP_EXP+8.w=5000:7000 || status=1",
        "setpci -s 0000:2a:00.0 CAP_EXP+8.w=5000:7000 || status=1",
    ]
    assert "smp_affinity" not in written
    plan = operations(max_read_request=4096, **LOCAL)
    both = content(plan, at_boot.SCRIPT)
    assert "setpci" in both
    assert "for pci in 0000:18:00.0 0000:2a:00.0; do" in both
    assert "Bind RDMA interrupts to local CPUs" in {one.name for one in plan.operations}
    assert "setpci" not in content(operations(**LOCAL), at_boot.SCRIPT)


@pytest.mark.parametrize(("size", "bits"), [(128, 0), (256, 1), (512, 2), (1024, 3), (2048, 4), (4096, 5)])
def test_bits_of_a_read_request(size, bits):
    assert at_boot.read_request_bits(size) == bits


def test_a_read_request_is_read_from_the_register():
    assert at_boot.parse_read_request("2936") == 512


def _registers(first, second):
    return {"setpci -s 0000:18:00.0 CAP_EXP+8.w": first, "setpci -s 0000:2a:00.0 CAP_EXP+8.w": second}


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        (_registers("5936\n", "5936\n"), "PASS", "4096 bytes"),
        (
            _registers("5936\n", "2936\n"),
            "FAIL",
            "mlx5_rail1 (0000:2a:00.0) has a read request size of 512 bytes, not 4096",
        ),
        (_registers("5936\n", ""), "UNKNOWN", "setpci did not print a register: ''"),
        ({}, "UNKNOWN", None),
    ],
)
def test_read_requests(replies, status, evidence):
    found = check(REQUESTS, replies)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


class Machine:
    """A sysfs and /proc with two NUMA nodes, CPUs 0-3 and 4-7; interrupts by card, with the CPUs that they are on."""

    def __init__(self, root, cards, nodes=2):
        self.root = root
        for number in range(nodes):
            (root / f"sys/devices/system/node/node{number}").mkdir(parents=True)
        for pci, (numa, interrupts) in cards.items():
            at = root / "sys/bus/pci/devices" / pci
            (at / "msi_irqs").mkdir(parents=True)
            (at / "numa_node").write_text(f"{numa}\n")
            (at / "local_cpulist").write_text({-1: "0-7", 0: "0-1,2-3", 1: "4-7"}[numa] + "\n")
            for interrupt, cpus in interrupts.items():
                (at / "msi_irqs" / f"{interrupt}").write_text("msix\n")
                if cpus is not None:
                    (root / f"proc/irq/{interrupt}").mkdir(parents=True)
                    (root / f"proc/irq/{interrupt}/smp_affinity_list").write_text(f"{cpus}\n")

    def run(self, script):
        for path in ("/sys/", "/proc/"):
            script = script.replace(path, f"{self.root}{path}")
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)

    def read(self):
        return self.run(at_boot.interrupts_read(PCIS)).stdout.strip()

    def cpus(self, interrupt):
        return (self.root / f"proc/irq/{interrupt}/smp_affinity_list").read_text().strip()


def script(**options):
    _, node = made(**options)
    return at_boot.script(node.options["rdma"], PCIS)


def test_interrupts_are_moved_to_near_cpus_one_after_the_other(tmp_path):
    machine = Machine(
        tmp_path,
        {
            PCIS[0]: (0, {30: "0", 31: "4-5", 32: "7", 33: "0-7", 34: None}),
            PCIS[1]: (1, {40: "5", 41: "3"}),
        },
    )
    assert machine.read().splitlines() == [
        "interrupt 31 of 0000:18:00.0 is on CPU 4 5",
        "interrupt 32 of 0000:18:00.0 is on CPU 7",
        "interrupt 33 of 0000:18:00.0 is on CPU 4 5 6 7",
        "interrupt 41 of 0000:2a:00.0 is on CPU 3",
    ]
    done = machine.run(script(**LOCAL))
    assert (done.returncode, done.stderr) == (0, "")
    assert machine.read() == "local"
    assert [machine.cpus(number) for number in (30, 31, 32, 33, 40, 41)] == ["0", "0", "1", "2", "5", "7"]
    assert machine.run(script(**LOCAL)).returncode == 0
    assert machine.cpus(31) == "0", "what is near stays where it is"


def test_the_cpu_that_gets_an_interrupt_counts_not_those_that_may(tmp_path):
    machine = Machine(tmp_path, {PCIS[0]: (0, {30: "0-7"}), PCIS[1]: (1, {40: "0-7"})})
    for interrupt, cpu in ((30, 2), (40, 2)):
        (tmp_path / f"proc/irq/{interrupt}/effective_affinity_list").write_text(f"{cpu}\n")
    assert machine.read() == "interrupt 40 of 0000:2a:00.0 is on CPU 2"
    (tmp_path / "proc/irq/40/smp_affinity_list").write_text("5\n")
    assert machine.read() == "local", "it was moved, and the next interrupt comes to where it may"


def test_what_cannot_be_read_is_never_local(tmp_path):
    machine = Machine(tmp_path, {PCIS[0]: (-1, {30: "0"})})
    assert machine.read().splitlines() == [
        "no MSI interrupts of 0000:2a:00.0 in sysfs",
        "the firmware does not report the NUMA node of 0000:18:00.0",
    ]
    assert machine.run(script(**LOCAL)).returncode == 1
    one_node = Machine(tmp_path / "one", {PCIS[0]: (-1, {30: "0"}), PCIS[1]: (-1, {40: None})}, nodes=1)
    assert one_node.read() == "no interrupt of 0000:2a:00.0 is in use", "with one node all CPUs are near"


def test_an_interrupt_that_cannot_be_moved_is_named(tmp_path):
    """The kernel does not let go of some: EIO."""
    machine = Machine(tmp_path, {PCIS[0]: (0, {30: "0", 31: "7"}), PCIS[1]: (1, {40: "5"})})
    written = '"/proc/irq/$interrupt/smp_affinity_list"'
    assert written in script(**LOCAL)
    done = machine.run(script(**LOCAL).replace(written, "/dev/full"))
    assert done.returncode == 1
    assert "interrupt 31 cannot be moved to CPU 0" in done.stderr


def printed(text):
    return answer(at_boot.interrupts_read(PCIS), text)


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        (printed("local\n"), "PASS", "interrupts of mlx5_rail0, mlx5_rail1 are on local CPUs"),
        (
            printed("interrupt 41 of 0000:2a:00.0 is on CPU 3\n"),
            "FAIL",
            "mlx5_rail1: interrupt 41 (CPU 3) is far from it",
        ),
        (
            printed("".join(f"interrupt {n} of 0000:18:00.0 is on CPU 56 57\n" for n in range(31, 37))),
            "FAIL",
            "mlx5_rail0: interrupts 31 (CPU 56 57), 32 (CPU 56 57), 33 (CPU 56 57), 34 (CPU 56 57) and 2 more are far from it",
        ),
        (
            printed("the firmware does not report the NUMA node of 0000:18:00.0\n"),
            "UNKNOWN",
            "the firmware does not report the NUMA node of 0000:18:00.0",
        ),
        ({}, "UNKNOWN", None),
    ],
)
def test_the_check_of_interrupts(replies, status, evidence):
    found = check(INTERRUPTS, replies, **LOCAL)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_where_they_are_checked():
    _, node = made(**LOCAL)
    assert INTERRUPTS in claimed("rdma", CHECKS, node)
    assert REQUESTS not in claimed("rdma", CHECKS, node)
    _, without = made()
    assert INTERRUPTS not in claimed("rdma", CHECKS, without)
    found = check(INTERRUPTS, {}, platform=Platform.VM, **LOCAL)
    assert found.status == "OUT OF SCOPE"
    on_virtual = {operation.name for operation in operations(platform=Platform.VM, **LOCAL).operations}
    assert "Write the script that sets up RDMA devices at boot" not in on_virtual
