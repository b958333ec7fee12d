"""Names of kernel objects are short enough and never alike."""

from rackwright.lab import names


def test_short_names_stay_readable():
    assert names.interface("v", "node1") == "v-node1"
    assert names.interface("v", "thirteenchars") == "v-thirteenchars"


def test_long_names_are_cut_and_told_apart():
    long = [names.interface("v", f"gpu-rack-a-node{number:03}") for number in range(1, 101)]
    assert all(len(name) == 15 and name.startswith("v-gpu-ra-") for name in long)
    assert len(set(long)) == 100


def test_a_bridge_is_called_after_its_subnet_alone():
    assert names.bridge("10.78.0.0/16") == names.bridge("10.78.0.0/16") != names.bridge("10.79.0.0/16")
    assert len(names.bridge("192.168.100.0/24")) <= 15


def test_a_rack_and_a_node_never_share_a_namespace():
    assert names.namespace("a") == "rw-a"
    assert names.namespace("a", "b-c") != names.namespace("a-b", "c")
    assert names.namespace("a", "b") != names.namespace("a-b")


def test_machine_names_are_labels_and_differ():
    machines = {
        names.machine(rack, node) for rack, node in [("a", "b-c"), ("a-b", "c"), ("x" * 63, "y" * 63)]
    }
    assert len(machines) == 3
    assert all(len(name) <= 63 and not name.endswith("-") for name in machines)


def test_mac_addresses_are_local_stable_and_unlike():
    first, second = names.mac("a", "node1", "node"), names.mac("a", "node1", "switch")
    assert first.startswith("02:")
    assert len(first.split(":")) == 6
    assert first == names.mac("a", "node1", "node") != second
