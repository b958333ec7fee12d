"""A rack as a whole: up, down, and everything one does with it in between."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Event

from rackwright.errors import LabError
from rackwright.lab import (
    cgroup,
    container_disk,
    fault_record,
    faults,
    image,
    keys,
    leaves,
    mirror,
    names,
    network,
    node,
    power,
    snapshots,
    state,
    status,
)
from rackwright.lab.artefact import serve, store
from rackwright.lab.at_once import boots_at_once, in_parallel, raise_host_limits
from rackwright.lab.bmc import service
from rackwright.lab.netns import rack_is_up
from rackwright.lab.process import attach, require
from rackwright.lab.spec import NodeSpec, RackSpec, check_label

_UP_PROGRAMS = ("ip", "mount", "unshare", "nsenter", "setpriv", "setsid", "ssh-keygen")
_MIRROR_PROGRAMS = ("apt-cacher-ng",)


def _silent(_: str) -> None:
    return


class Rack:
    """A rack of nodes on this machine, known by its name."""

    def __init__(self, spec: RackSpec, log: Callable[[str], None] = _silent) -> None:
        self.name = spec.name
        self.log = log
        self._spec: RackSpec | None = spec

    @classmethod
    def named(cls, name: str, log: Callable[[str], None] = _silent) -> "Rack":
        """The rack of that name with what is left of it, which may be nothing."""
        check_label("rack name", name)
        rack = cls.__new__(cls)
        rack.name, rack.log = name, log
        try:
            rack._spec = state.saved_spec(name)
        except LabError:
            rack._spec = None  # damaged state must not keep `down` from removing it
        return rack

    @staticmethod
    def names() -> list[str]:
        """Every rack of which anything is left on this machine."""
        folders = [path for base in (names.RUNTIME, names.lab_dir() / "racks") for path in base.glob("[!.]*")]
        groups = [name for name in cgroup.children() if "." not in name]
        return sorted({path.name for path in folders} | set(network.racks()) | set(groups))

    @property
    def running_spec(self) -> RackSpec:
        """The specification the rack was started with, even if its file has changed since."""
        spec = state.saved_spec(self.name)
        if spec is None or not rack_is_up(self.name):
            raise LabError(f"rack {self.name} is not up", hint="rackwright lab up brings it up")
        return spec

    def up(self, boot_images: Mapping[str, Path] | None = None) -> None:
        """Bring every node up; what already runs is left alone, what is missing is added.

        `boot_images`: the folder of each virtual machine's boot image, by node (rackwright.image.for_lab).
        """
        spec = self._spec
        if spec is None:
            raise LabError(f"rack {self.name} has no recorded specification")
        require((*_UP_PROGRAMS, *(_MIRROR_PROGRAMS if spec.apt_proxy else ())))
        for one in {(one.vm is None, one.bmc is None): one for one in spec.nodes}.values():
            node.kind(one).require_host()
        with self._locked():
            self._begin(spec)
            public_key = keys.ensure_admin_key(spec.key)
            with ExitStack() as held:
                trees = held.enter_context(
                    image.held({one.image for one in spec.nodes if one.vm is None}, self.log)
                )
                kubernetes = held.enter_context(store.held(self.log)) if spec.kubernetes else None
                network.make_rack(spec)
                leaves.start(spec)
                mirror.open_door(spec)
                if kubernetes is not None:
                    serve.open_door(spec, kubernetes)
                keys.forget_hosts(spec, [one for one in spec.racked if _is_new(spec, one)])
                bases = {one.name: _base(one, trees, boot_images or {}) for one in spec.nodes}
                in_parallel(spec.nodes, lambda one: _prepare(spec, one, bases[one.name], public_key), Event())
                keys.write_known_hosts(spec, _host_keys(spec))
                service.start(spec)
                give_up = Event()
                bring_up = partial(self._bring_up, spec, give_up)
                in_parallel(spec.nodes, bring_up, give_up, workers=boots_at_once())

    def down(self) -> None:
        """Remove every process, namespace, mount and file of the rack, in any state."""
        require(("ip", "setpriv"))
        with self._locked():
            state.forget_spec(self.name)
            cgroup.remove(self.name)
            network.remove_rack(self.name)
            container_disk.wait_released(self.name)
            _remove_folder(names.rack_disks(self.name))
            mirror.close_door(self.name)
            _remove_folder(names.rack_state(self.name))
            image.sweep()
            store.sweep()
            cgroup.tidy()
        self.log(f"rack {self.name} is gone")

    def status(self) -> status.RackStatus:
        """The state of the rack now."""
        require(())
        return status.read(self.name, state.saved_spec(self.name))

    def exec(self, node_name: str, argv: Sequence[str]) -> int:
        """Run a program as root on a node, on this terminal, and return its exit code."""
        require(("nsenter", "setpriv"))
        target = self.running_spec.node(node_name)
        return node.kind(target).attach(self.name, target, argv)

    def run(self, node_name: str, argv: Sequence[str], timeout: float = 60) -> str:
        """Run a program as root on a node and return its output; failure is a LabError."""
        require(("nsenter", "setpriv"))
        target = self.running_spec.node(node_name)
        return node.kind(target).run_inside(self.name, target, argv, timeout)

    def console(self, node_name: str) -> int:
        """A root shell on a node, with or without its sshd; of a virtual machine its serial line."""
        require(("nsenter", "setpriv"))
        target = self.running_spec.node(node_name)
        return node.kind(target).console(self.name, target)

    def ssh(self, node_name: str, argv: Sequence[str] = ()) -> int:
        """OpenSSH to a node as the administrator, from inside the rack, with strict host keys."""
        require(("nsenter", "ssh"))
        return attach(self.ssh_command(node_name, argv))

    def ssh_command(self, node_name: str, argv: Sequence[str] = (), user: str | None = None) -> list[str]:
        """The command which `ssh` runs."""
        spec = self.running_spec
        options = [
            "StrictHostKeyChecking=yes",
            "UpdateHostKeys=no",
            f"UserKnownHostsFile={spec.known_hosts.absolute()}",
            "GlobalKnownHostsFile=none",
            "IdentitiesOnly=yes",
            "ConnectTimeout=10",
        ]
        ssh = ["ssh", "-F", "none", "-i", str(spec.key.absolute()), "-p", str(spec.ssh_port)]
        ssh += [word for option in options for word in ("-o", option)]
        ssh.append(f"{user or spec.admin_user}@{spec.node(node_name).address}")
        return network.inside(names.namespace(self.name), [*ssh, "--", *argv] if argv else ssh)

    def fault(self, node_name: str, kind: str, *args: str) -> None:
        """Break a node in one of the ways of `rackwright.lab.faults`."""
        require(("ip", "nsenter", "setpriv"))
        with self._locked(wait=30):
            spec = self.running_spec
            faults.inject(spec, spec.node(node_name), kind, args)

    def heal(self, node_name: str) -> None:
        """Undo every fault of a node, start it if it is off, and wait until it is ready."""
        self._with_node(node_name, faults.heal)

    def reboot(self, node_name: str) -> None:
        """Reboot a node in good order, and wait until it is ready."""
        self._with_node(node_name, power.reboot)

    def power(self, node_name: str, action: str) -> None:
        """Do to a node what its BMC would: one of rackwright.lab.power.ACTIONS."""
        self._with_node(node_name, partial(power.act, action=action))

    def snapshot(self, node_name: str, name: str) -> None:
        """Keep the state of a virtual machine's disks under a name; one of that name is replaced."""
        self._with_node(node_name, partial(snapshots.take, name=name))

    def restore(self, node_name: str, name: str) -> None:
        """Bring a virtual machine's disks back to a snapshot, boot it, and wait until it is ready."""
        self._with_node(node_name, partial(snapshots.restore, name=name))

    def _with_node(self, node_name: str, act: Callable[[RackSpec, NodeSpec], None]) -> None:
        require(("ip", "nsenter", "setpriv"))
        with self._locked(wait=30):
            spec = self.running_spec
            target = spec.node(node_name)
            node.kind(target).require_host()
            act(spec, target)

    @contextmanager
    def _locked(self, wait: float = 0.0) -> Iterator[None]:
        with state.lock(f"rack {self.name}", wait):
            yield

    def _begin(self, spec: RackSpec) -> None:
        old = state.saved_spec(self.name)
        if old is None:
            # Nothing vouches for what a reboot or a half removal left.
            cgroup.remove(self.name)
            network.remove_rack(self.name)
            _remove_folder(names.rack_disks(self.name))
            _remove_folder(names.rack_state(self.name))
        else:
            _refuse_changes(old, spec)
        (names.rack_state(self.name) / "nodes").mkdir(parents=True, exist_ok=True)
        state.save_spec(spec)
        for name in set(state.recorded_nodes(self.name)) - {one.name for one in spec.nodes}:
            self.log(f"removing node {name}: it is no longer in the rack")
            cgroup.remove(self.name, f"{name}.delay")
            node.remove(self.name, name)
            shutil.rmtree(names.node_state(self.name, name))
        raise_host_limits()

    def _bring_up(self, spec: RackSpec, give_up: Event, target: NodeSpec) -> None:
        if target.bmc is not None:
            return  # its BMC switches it on
        if broken := fault_record.recorded(self.name, target.name):
            self.log(f"{target.name}: not changed, it has faults ({', '.join(broken)})")
            return
        if started := not node.running(self.name, target.name):
            node.kind(target).start(spec, target)
        node.wait_ready(spec, target, give_up)
        if started:
            self.log(f"{target.name}: ready at {target.address}")


def _base(target: NodeSpec, trees: Mapping[str, Path], boot_images: Mapping[str, Path]) -> Path:
    if target.vm is None:
        return trees[target.image]
    if target.bmc is not None:
        return Path()  # its disks are blank
    if target.name not in boot_images:
        raise LabError(f"node {target.name} is a virtual machine and has no boot image")
    return boot_images[target.name]


def _prepare(spec: RackSpec, target: NodeSpec, base: Path, public_key: str) -> None:
    # The record is written last: a node which has one has its disk, and its keys are in known_hosts.
    if not _is_new(spec, target):
        return
    names.node_state(spec.name, target.name).mkdir(parents=True, exist_ok=True)
    identity = node.kind(target).prepare(spec, target, base, public_key)
    record = state.NodeRecord(target.to_json(), str(base), identity.host_key, identity.machine_id)
    state.save_node_record(spec.name, target.name, record)


def _is_new(spec: RackSpec, target: NodeSpec) -> bool:
    return state.node_record(spec.name, target.name) is None


def _host_keys(spec: RackSpec) -> dict[str, str]:
    records = {one.name: state.node_record(spec.name, one.name) for one in spec.nodes}
    return {
        name: record.host_key for name, record in records.items() if record is not None and record.host_key
    }


def _refuse_changes(old: RackSpec, new: RackSpec) -> None:
    """A running rack may gain and lose nodes; anything else would need them all to boot anew."""
    before, after = old.to_json() | {"nodes": None}, new.to_json() | {"nodes": None}
    if old.bmc_bridge is None:
        after["bmc_bridge"] = None  # the first racked machine brings its network
    changed = [key for key in before if before[key] != after[key]]
    known = {one.name: one for one in old.nodes}
    changed += [f"node {one.name}" for one in new.nodes if known.get(one.name, one) != one]
    if changed:
        raise LabError(
            f"rack {new.name} is up and differs from its file: {', '.join(changed)}",
            hint=f"rackwright lab down --name {new.name}, then up again",
        )


def _remove_folder(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
