"""Synchronises the ranks of all nodes: each connects to the first node, works on its signal, and answers."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from rackwright.storage.programs.children import one_line

LINE_MAX_BYTES = 4096
LEAST_SECONDS = 0.2
"""Even past the deadline a rank that has answered is heard."""

Answer = dict[str, Any]


class Coordinator:
    """The first node's side."""

    def __init__(self, address: str, port: int, token: str, ranks: int, deadline: float) -> None:
        self._token, self._ranks, self._deadline = token, ranks, deadline
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))
        self._listener.listen(min(ranks + 16, 4096))
        self._there: dict[int, socket.socket] = {}

    def run(self, phases: Sequence[str]) -> tuple[list[tuple[str, dict[int, Answer]]], list[int]]:
        """The answers of every rank by phase, and the ranks that never came; a phase with an error is the last."""
        self._assemble()
        missing = [rank for rank in range(self._ranks) if rank not in self._there]
        done: list[tuple[str, dict[int, Answer]]] = []
        for phase in phases if not missing else ():
            begun = time.monotonic()
            late: dict[int, float] = {}
            for rank in self._there:
                self._send(rank, phase)
                late[rank] = time.monotonic() - begun
            answers = {rank: _since(self._answer(rank, phase), late[rank]) for rank in self._there}
            done.append((phase, answers))
            if any("error" in answer for answer in answers.values()):
                break
        for rank in self._there:
            self._send(rank, "end")
        return done, missing

    def _assemble(self) -> None:
        while len(self._there) < self._ranks and time.monotonic() < self._deadline:
            self._listener.settimeout(max(LEAST_SECONDS, self._deadline - time.monotonic()))
            try:
                one, _ = self._listener.accept()
            except OSError:
                continue
            # a stranger that connects and is silent may not use up the time
            one.settimeout(5)
            words = read_line(one).split(" ")
            rank = int(words[1]) if len(words) == 2 and words[1].isdigit() else -1
            if words[0] != self._token or not 0 <= rank < self._ranks or rank in self._there:
                one.close()
                continue
            self._there[rank] = one

    def _send(self, rank: int, text: str) -> None:
        try:
            self._there[rank].sendall(f"{text}\n".encode())
        except OSError:
            return  # its answer is then missing, which is equivalent

    def _answer(self, rank: int, phase: str) -> Answer:
        one = self._there[rank]
        one.settimeout(max(LEAST_SECONDS, self._deadline - time.monotonic()))
        try:
            line = read_line(one)
        except OSError:
            line = ""
        if not line:
            late = time.monotonic() >= self._deadline
            why = "did not answer in time" if late else "ended before it answered"
            return {"error": why, "hung": late, "phase": phase}
        found = json.loads(line)
        return found if isinstance(found, dict) else {"error": "returned something that is not a result"}


def _since(answer: Answer, late: float) -> Answer:
    """A rank's seconds count from when the first rank was released, as one rate is made of all."""
    return {**answer, "seconds": answer["seconds"] + late} if "seconds" in answer else answer


def follow(
    address: str, port: int, token: str, rank: int, work: dict[str, Callable[[], Answer]], deadline: float
) -> None:
    """A rank's side: run each phase on the first node's signal."""
    one = _connected(address, port, deadline)
    one.sendall(f"{token} {rank}\n".encode())
    while True:
        phase = read_line(one)
        if phase not in work:
            return
        try:
            answer = work[phase]()
        except Exception as error:  # noqa: BLE001 - any error belongs into the answer
            answer = {"error": one_line(error)}
        one.sendall(json.dumps(answer).encode() + b"\n")


def _connected(address: str, port: int, deadline: float) -> socket.socket:
    """The first node may start later than this one."""
    while True:
        one = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        one.settimeout(5)
        try:
            one.connect((address, port))
        except OSError:
            one.close()
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.2)
        else:
            one.settimeout(max(LEAST_SECONDS, deadline - time.monotonic()))
            return one


def read_line(one: socket.socket) -> str:
    """One line, byte by byte as these are few and nothing is read ahead; empty at the end or where it is too long."""
    data = b""
    while not data.endswith(b"\n"):
        part = one.recv(1)
        if not part or len(data) >= LINE_MAX_BYTES:
            return ""
        data += part
    return data[:-1].decode("utf-8", "replace")
