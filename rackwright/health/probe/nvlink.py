"""NVLink as nvidia-smi reports it: state, counters and topology."""

from __future__ import annotations

import re
from typing import Any

from rackwright.health.probe.source import NVIDIA_SMI_SECONDS, Source, Unavailable, number


def nvlink(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """State and error counters of every NVLink."""
    status = asked(source, "-s")
    try:
        return from_text(status, asked(source, "-e"))
    except Unavailable as error:
        return from_text(status, None, str(error))


def asked(source: Source, what: str) -> str:
    """Output of `nvidia-smi nvlink`; output that lists GPUs is valid with any exit status."""
    arguments = ["nvidia-smi", "nvlink", what]
    status, out, err = source.start(arguments, NVIDIA_SMI_SECONDS)
    if status == 0 or re.match(r"GPU \d+:", out):
        return out
    printed = (err.strip() or out.strip() or "nothing").splitlines()[-1][:300]
    raise Unavailable(f"`{' '.join(arguments)}` exited {status}: {printed}")


def from_text(status: str, errors: str | None, why: str | None = None) -> dict[str, Any]:
    """The section, from `nvlink -s` and `nvlink -e`; `why` is the reason if the latter is missing."""
    links, said = parse_status(status), parse_said(status)
    counters = parse_errors(errors) if errors is not None else {}
    return {
        "gpus": [
            {
                "index": index,
                "said": said.get(index),
                "links": [{"link": link, "gb_per_s": speed} for link, speed in links[index]],
                "errors": counters.get(index) if errors is not None else None,
            }
            for index in sorted(links)
        ],
        "errors_why": why,
    }


def parse_said(text: str) -> dict[int, str]:
    """The text that `nvidia-smi nvlink -s` prints in place of a GPU's links."""
    found: dict[int, str] = {}
    current = None
    for line in text.splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        if gpu:
            current = int(gpu.group(1))
        elif current is not None and line.strip() and not re.match(r"\s+Link \d+:", line):
            found.setdefault(current, line.strip()[:120])
    return found


def parse_status(text: str) -> dict[int, list[tuple[int, Any]]]:
    """Read `nvidia-smi nvlink -s`: (link, GB/s or None when inactive) of each GPU."""
    found: dict[int, list[tuple[int, Any]]] = {}
    current = None
    for line in text.splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        link = re.match(r"\s+Link (\d+): (.+)", line)
        if gpu:
            current = found.setdefault(int(gpu.group(1)), [])
        elif link and current is not None:
            value = link.group(2)
            if "inactive" not in value and number(value) is None:
                raise Unavailable(f"`nvidia-smi nvlink -s` prints for a link: {value.strip()[:80]}")
            current.append((int(link.group(1)), number(value)))
    if not found:
        raise Unavailable("`nvidia-smi nvlink -s` lists no GPU")
    return found


def parse_errors(text: str) -> dict[int, dict[str, int]]:
    """Read `nvidia-smi nvlink -e`: per GPU the sum of each counter over its links.

    A rate (`15e-255`) is not a count, and a counter that is not supported is left out.
    """
    found: dict[int, dict[str, int]] = {}
    current = None
    for line in text.splitlines():
        gpu = re.match(r"GPU (\d+):", line)
        count = re.match(r"\s+Link \d+: (.+?)(?: Errors?)?: (\d+)\s*$", line)
        if gpu:
            current = found.setdefault(int(gpu.group(1)), {})
        elif count and current is not None:
            name = count.group(1).strip().lower().replace(" ", "_")
            current[name] = current.get(name, 0) + int(count.group(2))
    if not found:
        raise Unavailable("`nvidia-smi nvlink -e` lists no GPU")
    return found


def topology(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """The topology of GPUs and NICs."""
    return parse_topology(source.run(["nvidia-smi", "topo", "-m"], NVIDIA_SMI_SECONDS))


def parse_topology(text: str) -> dict[str, Any]:
    """Read `nvidia-smi topo -m`: the matrix, and the names behind NIC0, NIC1 ..."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines()]
    heads = [re.findall(r"(?:GPU|NIC)\d+", line) for line in lines[:3]]
    header = max(heads, key=len) if heads else []
    if not header:
        raise Unavailable("`nvidia-smi topo -m` prints no matrix")
    matrix: dict[str, dict[str, str]] = {}
    nics: dict[str, str] = {}
    for line in lines:
        row = line.split()
        if row and re.fullmatch(r"(?:GPU|NIC)\d+", row[0]) and len(row) > len(header):
            matrix[row[0]] = dict(zip(header, row[1 : len(header) + 1]))  # noqa: B905 - Python 3.9
        named = re.match(r"\s+(NIC\d+): (\S+)", line)
        if named:
            nics[named.group(1)] = named.group(2)
    if set(matrix) != set(header):
        raise Unavailable("`nvidia-smi topo -m` prints a matrix with rows missing")
    return {"matrix": matrix, "nics": nics}
