"""Output of nvidia-smi besides the commands the probe runs."""

from __future__ import annotations

import re

from rackwright.health.captured import smi_text
from rackwright.health.captured.reading import Context, Reading
from rackwright.health.probe.gpus import parse
from rackwright.health.probe.nvlink import from_text, parse_topology

_GPU = re.compile(r"GPU \d+:")
_ERROR = re.compile(r"\s*Link \d+: .*: ")
_LINK = re.compile(r"\s*Link \d+: (?:[\d.]+ GB/s|.*inactive)", re.IGNORECASE)
_NO_LINKS = re.compile(r"(?i)all links are inactive|Nvlink queries are not supported")


def is_xml(text: str) -> bool:
    """`nvidia-smi -q -x`."""
    return "<nvidia_smi_log" in text


def query_xml(text: str, context: Context) -> Reading:
    """The GPUs; which MIG profiles they have is only in `nvidia-smi -L`."""
    found = parse(text[text.index("<nvidia_smi_log") :])
    for gpu in found["gpus"]:
        if gpu["mig"]["current"]:
            del gpu["mig"]["profiles"]
    return Reading({"gpus": found})


def query_text(text: str, context: Context) -> Reading:
    """The same as text."""
    return query_xml(smi_text.to_xml(text), context)


def is_nvlink(text: str) -> bool:
    """`nvidia-smi nvlink -s`, `-e`, or one after the other."""
    lines = text.splitlines()
    links = any(_LINK.match(line) or _ERROR.match(line) or _NO_LINKS.search(line) for line in lines)
    return links and any(_GPU.match(line) for line in lines)


def nvlink(text: str, context: Context) -> Reading:
    """State and error counters, whichever was captured."""
    lines = text.splitlines()
    named = [line for line in lines if _GPU.match(line)]
    errors = [line for line in lines if _GPU.match(line) or _ERROR.match(line)]
    states = [line for line in lines if not _ERROR.match(line)]
    has_errors = len(errors) > len(named)
    has_states = any(_LINK.match(line) or _NO_LINKS.search(line) for line in lines)
    section = from_text("\n".join(states), "\n".join(errors))
    for gpu in section["gpus"]:
        if not has_states:
            del gpu["links"]
        if not has_errors:
            del gpu["errors"]
    return Reading({"nvlink": section})


def is_topology(text: str) -> bool:
    """`nvidia-smi topo -m`."""
    return re.search(r"^\W*(?:\x1b\[\d+m)?GPU0(?:\x1b\[\d+m)?\s+X\s", text, re.MULTILINE) is not None


def topology(text: str, context: Context) -> Reading:
    """The matrix; without NICs in it nothing is known of them."""
    found = parse_topology(text)
    nics = any(name.startswith("NIC") for name in found["matrix"])
    return Reading({"topology": found}, () if nics else ("gpu-nic-affinity",))
