"""The loopback address that stands for a node at the receiver of the central journal.

An address is assigned once and permanently, because files are named after it. Standard library,
Python 3.9.
"""

from __future__ import annotations

import ipaddress
import json
import os

_FIRST = int(ipaddress.IPv4Address("127.1.0.0"))
_MOST = int(ipaddress.IPv4Address("127.255.255.254")) - _FIRST


class Sources:
    """By node, in a file that a single process writes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._numbers = read(path)

    def address(self, node: str) -> str:
        """A node's address, on disk when this returns; OSError if that fails."""
        if node not in self._numbers:
            number = max(self._numbers.values(), default=0) + 1
            if number > _MOST:
                raise OSError("every address of the loopback network is taken")
            self._write({**self._numbers, node: number})
        return address_of(self._numbers[node])

    def _write(self, numbers: dict[str, int]) -> None:
        new = self._path + ".new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump(numbers, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, self._path)
        self._numbers = numbers


def address_of(number: int) -> str:
    """`127.1.0.1` for 1."""
    return str(ipaddress.IPv4Address(_FIRST + number))


def read(path: str) -> dict[str, int]:
    """Number by node; empty before the first. OSError or ValueError if unreadable: no address is assigned twice."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict) or not all(
        isinstance(one, int) and 0 < one <= _MOST for one in found.values()
    ):
        raise ValueError(f"{path} does not contain node numbers")
    if len(set(found.values())) != len(found):
        raise ValueError(f"{path} has the same number for two nodes")
    return found


def nodes_by_address(path: str) -> dict[str, str]:
    """`worker1` by `127.1.0.1`."""
    return {address_of(number): node for node, number in read(path).items()}
