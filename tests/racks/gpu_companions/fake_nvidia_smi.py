#!/usr/bin/python3 -ISB
"""Stands for nvidia-smi: GPUs that keep their MIG mode and instances in a file, as a driver would.

Knows what the roles ask and nothing else; wherever the real one refuses, so does this. It serves
`-q -x` from two documents, made beforehand for MIG off and on.
"""

import json
import os
import re
import sys
from pathlib import Path

HOME = Path(os.environ.get("FAKE_GPUS", "/var/lib/fake-gpus"))
PLACES = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}


def main(arguments):
    path = HOME / "state.json"
    before = path.read_text()
    state = json.loads(before)
    gpus = state["gpus"]
    chosen = range(len(gpus))
    if arguments[:1] == ["mig"]:
        code = mig(gpus, arguments[1:])
        keep(path, before, state)
        return code
    if arguments[:1] == ["-i"]:
        chosen, arguments = [int(arguments[1])], arguments[2:]
    words = " ".join(arguments)
    if words == "-q -x":
        print((HOME / ("on.xml" if any(gpu["mode"] == "Enabled" for gpu in gpus) else "off.xml")).read_text())
    elif words == "-L":
        for gpu in gpus:
            print(f"GPU {gpu['index']}: NVIDIA H100 80GB HBM3 (UUID: {gpu['uuid']})")
            for at, (profile, _) in enumerate(gpu["instances"]):
                print(f"  MIG {profile:<11} Device {at:>2}: (UUID: MIG-{gpu['index']}-{at})")
    elif words == "--query-compute-apps=pid --format=csv,noheader":
        print("\n".join(map(str, state["apps"])))
    elif found := re.fullmatch(r"--query-gpu=(\S+) --format=csv,noheader", words):
        keys = {"index": "index", "mig.mode.current": "mode"}
        for number in chosen:
            print(", ".join(str(gpus[number][keys[key]]) for key in found[1].split(",")))
    elif found := re.fullmatch(r"-mig ([01])", words):
        for number in chosen:
            if gpus[number]["instances"]:
                print("In use by another client", file=sys.stderr)
                return 19
            gpus[number]["pending"] = "Enabled" if found[1] == "1" else "Disabled"
            if not state["needs_reset"]:
                gpus[number]["mode"] = gpus[number]["pending"]
    elif words == "--gpu-reset":
        if not state["can_reset"]:
            print("GPU Reset couldn't run because GPU is the primary GPU.", file=sys.stderr)
            return 3
        for number in chosen:
            gpus[number]["mode"] = gpus[number]["pending"]
    else:
        print(f"fake nvidia-smi does not know: {words}", file=sys.stderr)
        return 2
    keep(path, before, state)
    return 0


def keep(path, before, state):
    """Whole or not at all, and only what has changed: others read it at the same time."""
    if (text := json.dumps(state)) != before:
        new = path.with_name(f"state.{os.getpid()}")
        new.write_text(text)
        os.replace(new, path)


def mig(gpus, arguments):
    gpu = gpus[int(arguments[arguments.index("-i") + 1])]
    if "-dci" in arguments or "-dgi" in arguments:
        if not gpu["instances"]:
            print("No GPU instances found: Not Found", file=sys.stderr)
            return 6
        if "-dgi" in arguments:
            gpu["instances"] = []
        return 0
    if gpu["mode"] != "Enabled":
        print("No MIG-enabled devices found.", file=sys.stderr)
        return 6
    taken = set()
    for one in arguments[arguments.index("-cgi") + 1].split(","):
        profile, _, start = one.partition(":")
        slots = set(range(int(start), int(start) + PLACES[int(profile[0])]))
        if slots & taken or max(slots) > 7:
            print("Unable to create a GPU instance: Insufficient Resources", file=sys.stderr)
            return 19
        taken |= slots
        gpu["instances"].append([profile, int(start)])
    return 0


sys.exit(main(sys.argv[1:]))
