"""The agent: asks the head what to do with this machine, does it, and powers the machine off.

    python3 -m rackwright.install.agent.main

Run once by the initramfs's init. Unless the root is in memory, it always ends with power off, so that the head
decides what boots next.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import replace
from typing import Any

from rackwright.install.agent import (
    boot,
    disks,
    encryption,
    erasing,
    guard,
    inventory,
    network,
    node_files,
    ramdisk,
    tree,
)
from rackwright.install.agent.client import Head
from rackwright.install.agent.inside import entered
from rackwright.install.agent.order import Order, parse
from rackwright.install.agent.programs import AgentError, log, read_text
from rackwright.install.agent.unpack import unpack

_START = time.monotonic()
_HOLD_SECONDS = 26 * 3600.0
"""Longest time that the machine stays on, even if the head lets it wait longer."""
_WAIT_MIN, _WAIT_MAX = 1.0, 300.0
_CLOCK_SLACK = 5
_PROGRESS_STEP = 5
_FAILED_PATIENCE = 300.0
_MODE_OF = {"install": "install", "ramdisk": "install", "erase": "erase"}
"""Actions that the head may order, and the mode that the machine must have been booted in."""
_POWER_OFF = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, reboot(2)


class Work:
    """The agent's work after the head has accepted its token."""

    def __init__(self, config: guard.Config, head: Head, interface: str) -> None:
        self._config, self._head, self._interface = config, head, interface
        self.phase = "inventory"

    def step(self, phase: str, percent: int = 0) -> None:
        """Report progress; the work continues if that fails."""
        if phase != self.phase:
            log(phase)
        self.phase = phase
        try:
            self._head.post("/v1/progress", {"phase": phase, "percent": percent}, patience=0)
        except AgentError as error:
            log(f"cannot report progress: {error}")

    def decision(self) -> dict[str, Any]:
        """The head's decision, after as many inventories as it asks for."""
        deadline = time.monotonic() + _HOLD_SECONDS
        said: list[str] = []
        while True:
            answer = self._head.post("/v1/inventory", inventory.document())
            if answer.get("action") != "wait":
                return answer
            reasons = [str(reason) for reason in answer.get("reasons", [])]
            if reasons != said:
                log(f"on hold: {'; '.join(reasons)}")
                said = reasons
            if time.monotonic() > deadline:
                raise AgentError(f"on hold for more than {_HOLD_SECONDS / 3600:g} hours")
            time.sleep(min(max(float(answer.get("seconds", 5)), _WAIT_MIN), _WAIT_MAX))

    def carry_out(self, answer: dict[str, Any]) -> bool:
        """Carry out the head's decision; True: the machine continues as the node, from memory."""
        action = answer.get("action")
        if action == "off":
            log(
                f"the head stops the run: {'; '.join(map(str, answer.get('reasons', []))) or 'no reason given'}"
            )
            return False
        if action not in _MODE_OF:
            raise AgentError(f"the head answered {action!r}, not one of: wait, off, {', '.join(_MODE_OF)}")
        if self._config.mode != _MODE_OF[action]:
            raise AgentError(f"the head ordered {action}, but this machine was booted to {self._config.mode}")
        if action == "erase":
            self._erase(answer["erase"])
            return False
        order = parse(answer["install"], self._config.run, ramdisk=action == "ramdisk")
        if order.encryption is not None and order.encryption.kind == "tang":
            reached = encryption.network_argument(self._config.network, self._interface)
            order = replace(order, kernel_arguments=f"{reached} {order.kernel_arguments}")
        keys = self._in_memory(order) if action == "ramdisk" else self._on_disk(order)
        done = {"run": order.run, "host_keys": keys, "seconds": round(time.monotonic() - _START)}
        self._head.post("/v1/done", {**done, "disks": [disk.path for disk in order.disks]})
        log(f"{order.node} is installed")
        if action == "ramdisk":
            ramdisk.switch()
        return bool(action == "ramdisk")

    def _erase(self, ordered: Any) -> None:  # noqa: ANN401 - JSON data
        order = erasing.parse(ordered, self._config.run)
        self.step("erase")
        results = erasing.carry_out(order, self.step)
        self.phase = "erase"
        done = {"run": order.run, "seconds": round(time.monotonic() - _START), "disks": results}
        self._head.post("/v1/done", done)

    def failed(self, reason: str) -> None:
        """Report a failure; the partitions keep their unfinished names."""
        log(f"failed in {self.phase}: {reason}")
        try:
            body = {"error": reason[:2000], "phase": self.phase}
            self._head.post("/v1/failed", body, patience=_FAILED_PATIENCE)
        except AgentError as error:
            log(f"cannot report the failure: {error}")

    def _on_disk(self, order: Order) -> dict[str, str]:
        self.step("partition")
        disks.make(order)
        disks.mount(order)
        self._unpack(order)
        if order.encryption is not None:
            tree.require_programs(disks.TARGET, encryption.needed(order.encryption))
        if order.mirror:
            tree.require_programs(disks.TARGET, [("mdadm", "mdadm")])
        if order.lvm:
            tree.require_programs(disks.TARGET, [("lvm", "lvm2")])
        with entered():
            self.step("files")
            keys = node_files.write(order)
            self.step("boot")
            where = boot.places(order)
            boot.write_texts(order, where)
            if order.encryption is not None:
                encryption.bind(order)
            boot.write_loaders(order, where)
        self.step("finish")
        disks.finish(order)
        return keys

    def _in_memory(self, order: Order) -> dict[str, str]:
        ramdisk.mount()
        self._unpack(order, ramdisk.EXCLUDED)
        self.step("files")
        with entered():
            keys = node_files.write(order)
        ramdisk.complete()
        return keys

    def _unpack(self, order: Order, exclude: tuple[str, ...] = ()) -> None:
        self.step("image")

        def progress(percent: int) -> None:
            if percent and percent % _PROGRESS_STEP == 0:
                self.step("image", percent)

        blocks = self._head.image(order.image.size)
        unpack(blocks, order.image, disks.TARGET, exclude=exclude, progress=progress)
        log(f"{order.image.name} unpacked, its SHA-256 matches")


def work() -> bool:
    """The whole run; True: the machine continues as the node, from memory."""
    config = guard.take()
    serial = inventory.serial_number()
    guard.require_machine(config, serial, read_text("/proc/cmdline") or "")
    log(f"{config.node}, run {config.run}, {config.mode}; serial number {serial}")
    interface = network.bring_up(config.network)
    head = Head(config.server, config.token, guard.AUTHORITY)
    uuid = read_text("/sys/class/dmi/id/product_uuid")
    facts = {
        "version": 1,
        "mac": config.network.mac,
        "uuid": uuid,
        "serial": serial,
        "clock": int(time.time()),
    }
    _set_clock(head.hello(facts))
    log("the head accepted the token")
    own = Work(config, head, interface)
    try:
        return own.carry_out(own.decision())
    except AgentError as error:
        own.failed(str(error))
    except Exception as error:  # noqa: BLE001 - the head learns of every failure
        own.failed(f"{type(error).__name__}: {error}")
    return False


def main() -> None:
    """Work, then power off unless the node continues from memory."""
    try:
        goes_on = work()
    except AgentError as error:
        log(f"nothing was changed: {error}")
        goes_on = False
    except Exception as error:  # noqa: BLE001 - a machine with a broken agent must not stay on
        log(f"nothing was changed: {type(error).__name__}: {error}")
        goes_on = False
    if not goes_on:
        log("powering off")
        power_off()


def power_off() -> None:
    """Power off immediately, after a sync."""
    os.sync()
    ctypes.CDLL(None, use_errno=True).reboot(ctypes.c_int(_POWER_OFF))


def _set_clock(head: int) -> None:
    if abs(head - time.time()) > _CLOCK_SLACK:
        log(f"clock set from {time.time():.0f} to the head's {head}")
        time.clock_settime(time.CLOCK_REALTIME, head)


if __name__ == "__main__":
    main()
