"""The roce role: options, what is written, and the program on the node with tools that answer as real ones print."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import RELEASES
from rackwright.roles.roce import node, node_device, paths, texts
from rackwright.roles.roce.node_readings import (
    UnreadableError,
    as_wanted,
    dcb_dscp,
    dcb_mode,
    last_number,
    mlnx_qos,
    priorities,
)
from rackwright.roles.roce.options import RoceOptions
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.rail_sites import Devices, Interfaces, fabric_site
from tests.unit.roles.sites import head, worker

FIELDS = {"backend": "dcb", "dscp": 26, "priority": 3, "cnp_dscp": 48, "cnp_priority": 6, "pfc": True}
DCB = RoceOptions(**FIELDS)
NVIDIA = RoceOptions(**{**FIELDS, "backend": "mlnx_qos"})
QOS = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
\tprio:6 dscp:55,54,53,52,51,50,49,48,
default priority:
Receive buffer size (bytes): 130944,130944,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0   
\tbuffer      0   0   0   1   0   0   0   0   
tc: 0 ratelimit: unlimited, tsa: vendor
"""


def options(given=DCB, **changes):
    return given.model_copy(update=changes)


def roce_site(given=DCB, *, soft=False, **changes):
    parts = {"roce": given, "devices": Devices(soft=soft), "naming": Interfaces()}
    return fabric_site(parts, **changes)


def test_dscp_and_priorities_have_no_default():
    assert len(errors_in(RoceOptions, {})) == 6  # these and the backend
    assert errors_in(RoceOptions, {**FIELDS, "cnp_dscp": 26}) == [
        "RDMA packets and congestion notifications have the same DSCP, 26."
    ]
    assert errors_in(RoceOptions, {**FIELDS, "cnp_priority": 3}) == [
        "Congestion notifications would queue behind the traffic they slow down, in priority 3."
    ]
    assert errors_in(RoceOptions, {**FIELDS, "dscp": 64}) == ["Input should be less than or equal to 63"]


def test_what_others_ask():
    assert (DCB.traffic_class, DCB.priority) == (104, 3)
    cluster = roce_site()
    assert DCB.unit_files(worker(cluster)) == (paths.UNIT_PATH,)
    assert "roce" not in head(cluster).options  # it is not on the fabric


def test_refused():
    cluster = roce_site(options(networks=("fabric", "management", "nowhere")))
    assert list(worker(cluster).options["roce"].problems(cluster)) == [
        (
            "networks[1]",
            "management has `kind: ethernet`, which is not supported here.",
            "set `kind: roce` or `kind: spectrum-x` for the network, or remove it here",
        ),
        ("networks[2]", "Network nowhere does not exist.", "networks: management, storage, fabric"),
        (
            "networks",
            "head1 has no RDMA device for management rail 0.",
            "declare it in `roles.rdma.devices`",
        ),
    ]
    assert list(DCB.problems(roce_site())) == []
    assert list(DCB.problems(roce_site(kind=LinkKind.SPECTRUM_X))) == []
    nameless = fabric_site({"roce": DCB, "devices": Devices(netdev=False)})
    assert list(DCB.problems(nameless)) == [
        (
            "strict_arp",
            "The interface of mlx5_rail0 (fabric rail 0) on gpu1 is not declared.",
            "declare `netdev` in `roles.rdma.devices`, or `roles.network.networks`",
        )
    ]


def test_warned_of():
    lossy = options(pfc=False, congestion_control=False)
    (found,) = lossy.warnings(roce_site(lossy))
    assert found[0] == "pfc"
    assert list(DCB.warnings(roce_site())) == []


def test_what_is_written():
    cluster = roce_site()
    gpu1 = worker(cluster)
    files = texts.files(cluster, gpu1, DCB)
    assert list(files) == [paths.PROGRAM, paths.SETTINGS, paths.UNIT_PATH, paths.SYSCTLS]
    wanted = {
        "dcbx": "host",
        "trust": "dscp",
        "dscp.26": "3",
        "dscp.48": "6",
        "pfc": "3",
        "cnp_dscp": "48",
        "cnp_priority": "6",
        "default_tos": "104",
    }
    assert json.loads(files[paths.SETTINGS]) == {
        "backend": "dcb",
        "devices": {
            f"mlx5_rail{rail}": {"netdev": f"rail{rail}", "port": 1, "priority": 3, "wanted": wanted}
            for rail in (0, 1)
        },
    }
    assert texts.wanted(NVIDIA) == wanted | {"np": "1", "rp": "1", "traffic_class": "104"}
    assert texts.wanted(options(pfc=False))["pfc"] == ""
    assert (
        "ExecStart=/usr/bin/python3 -IS /usr/local/libexec/rackwright-roce.py apply --wait 60\n"
        in (files[paths.UNIT_PATH])
    )
    assert files[paths.SYSCTLS].splitlines()[2:5] == [
        "net/ipv4/conf/rail0/arp_ignore = 1",
        "net/ipv4/conf/rail0/arp_announce = 2",
        "net/ipv4/conf/rail0/rp_filter = 2",
    ]


def test_software_devices_get_arp_alone():
    cluster = roce_site(soft=True)
    assert list(texts.files(cluster, worker(cluster), DCB)) == [paths.SYSCTLS]
    plan = planned(fabric_site({"roce": DCB, "devices": Devices(soft=True)}), worker(cluster))
    assert [op.name for op in plan.operations if op.role == "roce"] == [
        f"Write {paths.SYSCTLS}",
        "Set ARP on the rails",
    ]


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_it_is_planned_on_every_release(os):
    cluster = roce_site(os=os)
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert [op.name for op in plan.operations if op.role == "roce"] == [
        "Install the NIC tools",
        "Create /etc/rackwright",
        "Create /usr/local/libexec",
        f"Write {paths.PROGRAM}",
        f"Write {paths.SETTINGS}",
        f"Write {paths.UNIT_PATH}",
        f"Write {paths.SYSCTLS}",
        "Set ARP on the rails",
        "Configure the NICs at boot",
        "Configure the NICs",
    ]
    assert commands(plan, "Configure the NICs") == (f"{paths.RUN} apply",)
    assert content(plan, paths.PROGRAM) == texts.program()


def test_a_container_is_configured_and_not_set():
    cluster = roce_site(platform=Platform.CONTAINER)
    names = [op.name for op in planned(cluster, worker(cluster)).operations if op.role == "roce"]
    assert "Configure the NICs" not in names
    assert f"Write {paths.SETTINGS}" in names


def test_mlnx_qos_is_read():
    found = mlnx_qos(QOS)
    assert {key: found[key] for key in ("dcbx", "trust", "pfc", "dscp.26", "dscp.48", "dscp.0")} == {
        "dcbx": "host",
        "trust": "dscp",
        "pfc": "3",
        "dscp.26": "3",
        "dscp.48": "6",
        "dscp.0": "0",
    }
    assert mlnx_qos(QOS.replace("OS controlled", "Firmware controlled"))["dcbx"] == "firmware"
    assert mlnx_qos(QOS.replace("0   0   0   1   0", "0   0   0   0   0"))["pfc"] == ""
    assert mlnx_qos("nothing of it") == {}


def test_dcb_is_read():
    assert priorities("prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off \n") == "3"
    assert priorities("pfc-cap 8 macsec-bypass off delay 0 \nprio-pfc 0:off 1:off\n") == ""
    assert dcb_dscp("dscp-prio 26:3 48:6 \n") == {"26": "3", "48": "6"}
    assert dcb_dscp("") == {}
    assert (dcb_mode("host ieee \n"), dcb_mode("ieee static\n"), dcb_mode("")) == (
        "host",
        "firmware",
        "firmware",
    )
    assert (last_number("Global tclass=104\n"), last_number("")) == ("104", "not set")
    for read in (priorities, dcb_dscp):
        with pytest.raises(UnreadableError):
            read("rubbish")


TOOL = """\
#!/bin/sh
case "$*" in
  *" show "*rail1*) echo "Error: no such device" >&2; exit 255;;
  *"app show"*) cat {state}/app 2>/dev/null || :;;
  *"pfc show"*) cat {state}/pfc;;
  *"dcbx show"*) cat {state}/dcbx;;
  *"buffer show"*) cat {state}/buffer;;
  "buffer set"*) printf '{{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[262080,459264,0,0,0,0,0,0],"total_size":1}}' >{state}/buffer;;
  "dcbx set"*) echo "host ieee" >{state}/dcbx;;
  "app replace"*) echo "$*" | sed 's/.*dscp-prio /dscp-prio /' >{state}/one
    if [ -e {state}/app ]; then sed -i "s/$/ $(sed 's/dscp-prio //' {state}/one)/" {state}/app; else cp {state}/one {state}/app; fi;;
  "pfc set"*) echo "$*" | sed 's/.*prio-pfc/prio-pfc/' >{state}/pfc;;
esac
echo "$*" >>{state}/log
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A node with one NIC whose dcb keeps its state in files, as firmware has it after a boot."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "pfc").write_text("prio-pfc" + "".join(f" {n}:off" for n in range(8)) + "\n")
    (state / "dcbx").write_text("ieee\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "dcb").write_text(TOOL.format(state=state))
    (tools / "dcb").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    root = tmp_path / "root"
    pci = root / "sys/devices/0000:18:00.0"
    (pci / "net/rail0").mkdir(parents=True)
    (root / "sys/class/infiniband/mlx5_rail0").mkdir(parents=True)
    (root / "sys/class/infiniband/mlx5_rail0/device").symlink_to(pci)
    cc = root / "sys/kernel/debug/mlx5/0000:18:00.0/cc_params"
    cc.mkdir(parents=True)
    (cc / "np_cnp_dscp").write_text("48\n")
    (cc / "np_cnp_prio").write_text("7\n")
    (root / "sys/kernel/config/rdma_cm/mlx5_rail0/ports/1").mkdir(parents=True)
    (root / "sys/kernel/config/rdma_cm/mlx5_rail0/ports/1/default_roce_tos").write_text("0\n")
    monkeypatch.setattr(node_device, "ROOT", str(root))
    write_settings(root, "dcb", texts.wanted(DCB))
    return root


def write_settings(root, backend, wanted, netdev=None):
    entry = {"netdev": netdev, "port": 1, "priority": 3, "wanted": wanted}
    path = root / paths.SETTINGS.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"backend": backend, "devices": {"mlx5_rail0": entry}}))


def ran(capsys, *words):
    code = node.main(list(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_program_sets_what_differs_and_nothing_else(tree, capsys):
    code, out, _ = ran(capsys, "wrong")
    assert (code, out.splitlines()) == (
        0,
        [
            "mlx5_rail0: dcbx is firmware, not host",
            "mlx5_rail0: trust is pcp, not dscp",
            "mlx5_rail0: dscp.26 is not set, not 3",
            "mlx5_rail0: dscp.48 is not set, not 6",
            "mlx5_rail0: pfc is , not 3",
            "mlx5_rail0: cnp_priority is 7, not 6",
            "mlx5_rail0: default_tos is 0, not 104",
        ],
    )
    assert ran(capsys, "apply") == (0, "", "")
    assert ran(capsys, "wrong") == (0, "as declared\n", "")
    log = tree.parent / "state/log"
    assert [line for line in log.read_text().splitlines() if " show " not in line] == [
        "dcbx set dev rail0 host ieee",
        "app replace dev rail0 dscp-prio 26:3",
        "app replace dev rail0 dscp-prio 48:6",
        "pfc set dev rail0 prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off",
    ]
    log.write_text("")
    assert ran(capsys, "apply", "--wait", "1") == (0, "", "")  # the second time there is nothing to set
    assert all(" show " in line for line in log.read_text().splitlines())
    document = json.loads(ran(capsys, "read")[1])
    assert document == {"mlx5_rail0": {"values": texts.wanted(DCB), "unreadable": {}}}


BUFFERS = {
    "prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0],
    "buffer_size": [262144, 459360, 0, 0, 0, 0, 0, 0],
}


def test_buffers_are_set_together_and_sizes_are_compared_as_the_driver_rounds_them(tree, capsys):
    # as a switch's port shows them with Linux 6.1: `prio-buffer 0:0 ... 7:0`, `buffer-size 0:18048b 1:0b ...`
    (tree.parent / "state/buffer").write_text(
        '{"prio_buffer":[0,0,0,0,0,0,0,0],"buffer_size":[18048,0,0,0,0,0,0,0],"total_size":28320}'
    )
    given = RoceOptions(**FIELDS, buffers=BUFFERS)
    write_settings(tree, "dcb", texts.wanted(given))
    assert ran(capsys, "wrong")[1].splitlines()[-2:] == [
        "mlx5_rail0: prio_buffer is 0,0,0,0,0,0,0,0, not 0,0,0,1,0,0,0,0",
        "mlx5_rail0: buffer_size is 18048,0,0,0,0,0,0,0, not 262144,459360,0,0,0,0,0,0",
    ]
    assert ran(capsys, "apply") == (0, "", "")
    assert ran(capsys, "wrong")[1] == "as declared\n"
    log = (tree.parent / "state/log").read_text().splitlines()
    set_at_once = {line for line in log if line.startswith("buffer set")}
    assert set_at_once == {
        "buffer set dev rail0 prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 buffer-size 0:262144 1:459360 2:0 3:0 4:0 5:0 6:0 7:0"
    }
    (tree.parent / "state/buffer").write_text("")
    assert "prio_buffer is unreadable (dcb printed no buffers: '')" in ran(capsys, "wrong")[1]


def test_a_size_that_is_another_is_not_rounded_away():
    wanted = "262144,459360,0,0,0,0,0,0"
    assert as_wanted("262080,459264,0,0,0,0,0,0", wanted) == wanted
    for other in ("261120,459360,0,0,0,0,0,0", "262272,459360,0,0,0,0,0,0", "262144,459360,0,0", "19872"):
        assert as_wanted(other, wanted) == other


def test_buffers_of_mlnx_qos(tree, capsys):
    tool = tree.parent / "tools/mlnx_qos"
    tool.write_text(f'#!/bin/sh\ncat {tree.parent}/qos\necho "$*" >>{tree.parent}/state/log\n')
    tool.chmod(0o755)
    (tree.parent / "qos").write_text(QOS)
    read = mlnx_qos(QOS)
    assert (read["prio_buffer"], read["buffer_size"]) == ("0,0,0,1,0,0,0,0", "130944,130944,0,0,0,0,0,0")
    wanted = {"prio_buffer": "0,0,0,1,0,0,0,0", "buffer_size": "262144,459360,0,0,0,0,0,0"}
    write_settings(tree, "mlnx_qos", wanted)
    assert ran(capsys, "wrong")[1] == (
        "mlx5_rail0: buffer_size is 130944,130944,0,0,0,0,0,0, not 262144,459360,0,0,0,0,0,0\n"
    )
    ran(capsys, "apply")
    assert (
        "-i rail0 --prio2buffer=0,0,0,1,0,0,0,0 --buffer_size=262144,459360,0,0,0,0,0,0"
        in (tree.parent / "state/log").read_text().splitlines()
    )
    write_settings(tree, "mlnx_qos", {"prio_buffer": "0,1,0,0,0,0,0,0"})
    ran(capsys, "apply")
    assert "-i rail0 --prio2buffer=0,1,0,0,0,0,0,0" in (tree.parent / "state/log").read_text().splitlines()
    (tree.parent / "qos").write_text("DCBX mode: OS controlled\n")
    unreadable = json.loads(ran(capsys, "read")[1])["mlx5_rail0"]["unreadable"]
    assert unreadable == {"prio_buffer": "mlnx_qos does not print it"}


def test_buffers_that_lose_what_is_lossless_are_refused():
    shared = {**BUFFERS, "prio_buffer": [0, 0, 0, 1, 1, 0, 0, 0]}
    assert errors_in(RoceOptions, {**FIELDS, "buffers": shared}) == [
        "Priority 3 has flow control and shares buffer 1 with others."
    ]
    assert RoceOptions(**{**FIELDS, "pfc": False, "buffers": shared}).buffers is not None
    empty = {**BUFFERS, "buffer_size": [262144, 0, 0, 0, 0, 0, 0, 0]}
    assert errors_in(RoceOptions, {**FIELDS, "buffers": empty}) == [
        "Buffer 1 has priorities and a size of 0."
    ]
    assert len(errors_in(RoceOptions, {**FIELDS, "buffers": {"prio_buffer": [0, 8]}})) == 2
    assert "prio_buffer" not in texts.wanted(DCB)
    assert texts.wanted(RoceOptions(**FIELDS, buffers={"prio_buffer": BUFFERS["prio_buffer"]})).keys() >= {
        "prio_buffer"
    }


def test_what_cannot_be_read_is_named_and_fails_the_unit(tree, capsys):
    write_settings(tree, "dcb", {"pfc": "3", "traffic_class": "104"}, netdev="rail1")
    document = json.loads(ran(capsys, "read")[1])["mlx5_rail0"]
    assert document["values"] == {}
    assert document["unreadable"] == {
        "pfc": "`dcb pfc show dev rail1 prio-pfc` exited 255: Error: no such device",
        "traffic_class": "the backend dcb does not show it",
    }
    code, _, err = ran(capsys, "apply")
    assert code == 1
    assert "pfc is unreadable" in err


def test_nvidia_s_driver(tree, capsys, monkeypatch):
    """mlnx_qos reports all as declared; the driver's files are read and written."""
    tool = tree.parent / "tools/mlnx_qos"
    tool.write_text(f'#!/bin/sh\ncat {tree.parent}/qos\necho "$*" >>{tree.parent}/state/log\n')
    tool.chmod(0o755)
    (tree.parent / "qos").write_text(QOS.replace("enabled     0   0   0   1", "enabled     0   0   0   0"))
    ecn = tree / "sys/class/net/rail0/ecn"
    for part in ("roce_np/enable", "roce_rp/enable"):
        (ecn / part).mkdir(parents=True)
        (ecn / part / "3").write_text("0\n")
    (ecn / "roce_np/cnp_dscp").write_text("48\n")
    (ecn / "roce_np/cnp_802p_prio").write_text("6\n")
    tc = tree / "sys/class/infiniband/mlx5_rail0/tc/1"
    tc.mkdir(parents=True)
    (tc / "traffic_class").write_text("Global tclass=0\n")
    write_settings(tree, "mlnx_qos", texts.wanted(NVIDIA))
    assert ran(capsys, "wrong")[1].splitlines() == [
        "mlx5_rail0: pfc is , not 3",
        "mlx5_rail0: default_tos is 0, not 104",
        "mlx5_rail0: np is 0, not 1",
        "mlx5_rail0: rp is 0, not 1",
        "mlx5_rail0: traffic_class is 0, not 104",
    ]
    code, _, err = ran(capsys, "apply")
    assert (code, err) == (1, "mlx5_rail0: pfc is , not 3\n")  # this mlnx_qos forgets: it is read back
    assert "-i rail0 --pfc 0,0,0,1,0,0,0,0" in (tree.parent / "state/log").read_text().splitlines()
    assert (ecn / "roce_np/enable/3").read_text() == "1"
    assert (tc / "traffic_class").read_text() == "104"
    monkeypatch.setenv("PATH", "/nowhere")
    unreadable = json.loads(ran(capsys, "read")[1])["mlx5_rail0"]["unreadable"]
    assert unreadable["trust"] == "mlnx_qos is not installed"


def test_without_configfs_the_default_is_unreadable_and_a_missing_folder_is_not_set(tree):
    device = node.Device("mlx5_rail0", {"netdev": None, "port": 1, "priority": 3, "wanted": {}})
    config = tree / "sys/kernel/config/rdma_cm"
    (config / "mlx5_rail0").rename(tree / "aside")
    assert node.default_tos(device) == "not set"
    config.rmdir()
    with pytest.raises(UnreadableError, match="rdma_cm is missing"):
        node.default_tos(device)


def test_the_installed_text_runs_alone(tmp_path):
    """One file, without rackwright, without settings: it reports what is missing."""
    program = tmp_path / "roce.py"
    program.write_text(texts.program())
    done = subprocess.run(
        [sys.executable, "-IS", program, "wrong"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "/etc/rackwright/roce.json: No such file or directory\n"
