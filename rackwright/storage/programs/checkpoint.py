"""Training with checkpoints, one of whose ranks dies while it writes: a rank's part of each of the three runs.

`reference` trains to the end. `break` saves once, and loses a rank in mid-write of the second save. `resume` loads the
first save, compares every byte by checksum, and trains to the end. torch.distributed.checkpoint (2.2 or newer) saves;
what makes a save whole is ours: a folder `step-N.partial`, synced, renamed, and then the file `latest`.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import importlib
import json
import os
import platform
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from rackwright.storage.programs.children import Children, become, one_line, say

STEPS, SAVE_EVERY = 12, 4
TENSORS = 4
GRACE_SECONDS = 5
_SIOCGIFADDR = 0x8915  # netdevice(7)


class Dying:
    """A stream whose writer is killed after a given number of bytes."""

    def __init__(self, stream: Any, after: int) -> None:  # noqa: ANN401 - torch opens it
        self._stream, self._left = stream, after

    def write(self, data: Any) -> int:  # noqa: ANN401 - bytes or a view
        """Write, or write what is left to write and die."""
        if len(data) > self._left:
            self._stream.write(bytes(data)[: self._left])
            self._stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= len(data)
        return int(self._stream.write(data))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)


def interface_of(address: str) -> str | None:
    """The interface with an address: gloo would take the one that the host's name resolves to, which may be lo."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(one, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


class Training:
    """The state of one rank, its steps and its saves."""

    def __init__(self, asked: dict[str, Any], rank: int, local: int, torch: Any) -> None:  # noqa: ANN401
        # loaded in the child alone: it takes seconds
        dist = importlib.import_module("torch.distributed")
        dcp = importlib.import_module("torch.distributed.checkpoint")
        device_mesh = importlib.import_module("torch.distributed.device_mesh")
        try:
            tensors = importlib.import_module("torch.distributed.tensor")
            shard = [tensors.Shard(0)]
        except (ImportError, AttributeError):  # before 2.5
            tensors = importlib.import_module("torch.distributed._tensor")
            shard = [tensors.Shard(0)]
        self._torch, self._dist, self._dcp = torch, dist, dcp
        self._rank, self._world = rank, len(asked["nodes"]) * asked["ranks_per_node"]
        self._folder = Path(asked["folder"])
        self._bytes = int(asked["size"])
        self._device = "cpu"
        if asked["backend"] == "nccl":
            torch.cuda.set_device(local)
            self._device = f"cuda:{local}"
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // asked["ranks_per_node"]))
        dist.init_process_group(
            asked["backend"],
            init_method=f"tcp://{asked['addresses'][0]}:{asked['port']}",
            rank=rank,
            world_size=self._world,
            timeout=timedelta(seconds=asked["seconds"]),
        )
        if self._device != "cpu":
            # the first collective settles which GPU barriers use; NCCL would guess it from the rank among all nodes
            dist.all_reduce(torch.zeros(1, device=self._device))
        torch.manual_seed(rank)
        count = self._bytes // TENSORS // 4
        self._local = {f"weights.{number}": torch.rand(count).to(self._device) for number in range(TENSORS)}
        # sharded as FSDP shards it: every rank has the same keys, which DCP demands
        mesh = device_mesh.init_device_mesh(self._device.partition(":")[0], (self._world,))
        self._state = {
            key: tensors.DTensor.from_local(local, mesh, shard, run_check=False)
            for key, local in self._local.items()
        }
        self.saves: list[float] = []

    def step(self, number: int) -> None:
        """One step; the ranks exchange a value, so that none can go on without the others."""
        total = self._torch.tensor([float(self._rank + number)], device=self._device)
        self._dist.all_reduce(total)
        for tensor in self._local.values():
            tensor.mul_(0.999).add_(total.item() * 1e-3)

    def digests(self) -> list[str]:
        """SHA-256 of the state of every rank."""
        digest = hashlib.sha256()
        for tensor in self._local.values():
            held = tensor.cpu().contiguous()
            data = (ctypes.c_char * (held.numel() * held.element_size())).from_address(held.data_ptr())
            digest.update(data)
        found: list[Any] = [None] * self._world
        self._dist.all_gather_object(found, digest.hexdigest())
        return [str(one) for one in found]

    def save(self, step: int, *, dies: bool = False) -> float:
        """Save the state as of a step; seconds from the moment all ranks begin to the moment `latest` names it."""
        digests = self.digests()
        partial = self._folder / f"step-{step}.partial"
        if self._rank == 0:
            partial.mkdir(mode=0o700)
            (partial / "digests.json").write_text(json.dumps(digests))
        self._dist.barrier()
        begun = time.monotonic()
        writer = self._dcp.FileSystemWriter(partial, sync_files=True)
        if dies:
            writer.fs.create_stream = dying(writer.fs.create_stream, self._bytes // 2)
        self._dcp.save(self._state, storage_writer=writer)
        self._dist.barrier()
        if self._rank == 0:
            publish(self._folder, partial, f"step-{step}")
        self._dist.barrier()
        self.saves.append(time.monotonic() - begun)
        return self.saves[-1]

    def load(self, name: str) -> tuple[float, list[str], list[str]]:
        """Load a save; seconds, the checksums now, and those that were saved with it."""
        for tensor in self._local.values():
            tensor.zero_()  # what was here before must not pass for what was loaded
        self._dist.barrier()
        begun = time.monotonic()
        self._dcp.load(self._state, storage_reader=self._dcp.FileSystemReader(self._folder / name))
        self._dist.barrier()
        seconds = time.monotonic() - begun
        saved = json.loads((self._folder / name / "digests.json").read_text())
        return seconds, self.digests(), [str(one) for one in saved]

    def end(self) -> None:
        """Leave together; the process ends next, and destroy_process_group of torch 2.6 was seen to hang."""
        self._dist.barrier()
        time.sleep(0.5)


def dying(create_stream: Any, after: int) -> Any:  # noqa: ANN401 - torch's FileSystem.create_stream
    """The same, except that what writes a rank's data dies in the middle."""

    @contextmanager
    def create(path: Any, mode: str) -> Iterator[Any]:  # noqa: ANN401
        with create_stream(path, mode) as stream:
            yield Dying(stream, after) if str(path).endswith(".distcp") and mode == "wb" else stream

    return create


def publish(folder: Path, partial: Path, name: str) -> None:
    """Make a save the latest one, in an order in which a crash at any point leaves a whole one."""
    _sync(partial)
    partial.rename(folder / name)
    _sync(folder)
    with (folder / "latest.new").open("w") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())
    (folder / "latest.new").rename(folder / "latest")
    _sync(folder)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def reference(training: Training, asked: dict[str, Any], rank: int) -> dict[str, Any]:
    """To the end without a save."""
    for number in range(1, STEPS + 1):
        training.step(number)
    return {"digests": training.digests()}


def broken(training: Training, asked: dict[str, Any], rank: int) -> dict[str, Any]:
    """One save that ends, and one that does not."""
    for number in range(1, 2 * SAVE_EVERY + 1):
        training.step(number)
        if number == SAVE_EVERY:
            seconds = training.save(number)
            if rank == 0:
                say({"facts": {"save_seconds": [seconds], "saved": f"step-{number}"}})
    training.save(2 * SAVE_EVERY, dies=rank == asked["victim"])
    return {"survived": True}


def resumed(training: Training, asked: dict[str, Any], rank: int) -> dict[str, Any]:
    """From the latest save to the end."""
    folder = Path(asked["folder"])
    name = (folder / "latest").read_text()
    partial = {
        one.name: sum(file.stat().st_size for file in one.glob("*.distcp"))
        for one in folder.iterdir()
        if one.name.endswith(".partial")
    }
    seconds, now, then = training.load(name)
    if rank == 0:
        for one in partial:
            shutil.rmtree(folder / one)
    first = int(name.removeprefix("step-")) + 1
    for number in range(first, STEPS + 1):
        training.step(number)
        if number % SAVE_EVERY == 0:
            training.save(number)
    return {
        "loaded": name,
        "partial": partial,
        "load_seconds": seconds,
        "matches": now == then,
        "save_seconds": training.saves,
        "digests": training.digests(),
    }


MODES = {"reference": reference, "break": broken, "resume": resumed}


def work(asked: dict[str, Any], index: int, local: int) -> None:
    """One rank."""
    rank = index * asked["ranks_per_node"] + local
    try:
        # Debian 13 builds torch 2.6 without libuv, which init_process_group asks for by default
        os.environ["USE_LIBUV"] = "0"
        interface = interface_of(asked["addresses"][index])
        if interface is not None:
            os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = interface
        try:
            torch = importlib.import_module("torch")
            dcp = importlib.import_module("torch.distributed.checkpoint")
        except ImportError as error:
            say({"missing": f"torch cannot be loaded: {one_line(error)}"})
            return
        if not hasattr(dcp, "save"):
            say({"missing": f"torch {torch.__version__} has no torch.distributed.checkpoint.save; 2.2 has"})
            return
        training = Training(asked, rank, local, torch)
        facts = MODES[asked["mode"]](training, asked, rank)
        if rank == 0:
            say({"facts": {**facts, "torch": str(torch.__version__)}})
        training.end()
    except Exception as error:
        say({"rank": rank, "error": one_line(error)})
        raise


def main(asked: dict[str, Any], index: int) -> None:
    """One process per node: starts this node's ranks and reports how each ended."""
    wrong = become(asked["user"])
    if wrong is not None:
        say({"rank": None, "error": wrong})
        return
    deadline = time.monotonic() + asked["seconds"]
    children = Children(asked["ranks_per_node"], lambda local: work(asked, index, local))
    ended = children.wait(deadline + GRACE_SECONDS)
    first = index * asked["ranks_per_node"]
    say({"exits": {str(first + local): status for local, status in sorted(ended.items())}})


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(given, given["nodes"].index(platform.node().split(".")[0]))
    os._exit(0)
