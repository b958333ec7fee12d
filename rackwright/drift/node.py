"""The drift check as it runs on a node. Standard library only, Python 3.9 or newer.

Installed together with the fact helper (rackwright/factcache/helper.py) in one file owned by root. It answers only
the questions in the file next to it, and reports what has changed, never the contents:

    rackwright-drift                 one line of JSON; the only command of the read-only key
    rackwright-drift --metrics       the same as metrics for node_exporter (pull mode)
    rackwright-drift --adopt DIGEST  after an apply: store the current answers as the expected ones,
                                     if they have the digest that the apply found
"""

import datetime
import fcntl
import hashlib
import json
import math
import os
import signal
import sys
import time

from rackwright.factcache.helper import QUESTIONS, answer

FOLDER = "/etc/rackwright-drift"
STATE = "/var/lib/rackwright-drift"
METRICS = STATE + "/rackwright_drift.prom"
SECONDS = 300
LISTED_MAX = 50


def sha256(text):
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def label(question):
    """The subject of a question. A command is named by its digest: its text means nothing to a reader."""
    kind = question["kind"]
    if kind == "shell":
        return "setting " + sha256(question["command"])[:12]
    if kind in ("path", "unit", "user", "group"):
        return "%s %s" % (kind, question[kind])
    names = question.get("keys") or question.get("packages") or [kind]
    return "%s %s" % (kind, " ".join(names)[:200])


def read(name):
    with open(os.path.join(FOLDER, name)) as handle:
        return handle.read()


def replace(path, text, mode):
    temporary = "%s.%d" % (path, os.getpid())
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as handle:
        os.fchmod(handle.fileno(), mode)
        handle.write(text)
    os.replace(temporary, path)


def seconds(stamp):
    """`Fri 2026-11-20 19:50:11.123456 UTC` as seconds since the epoch; nothing is 0."""
    words = stamp.split()
    if len(words) < 3:
        return 0.0
    when = datetime.datetime.strptime(" ".join(words[1:3]), "%Y-%m-%d %H:%M:%S.%f")
    return when.replace(tzinfo=datetime.timezone.utc).timestamp()


def lasting(question, reply):
    """An answer without what changes by itself: a restart or a reboot does not count as drift.

    Of a unit's times it keeps what the engine derives from them: whether a file it reads is newer than
    its last start. The size of a folder is ignored: it does not show what is in it.
    """
    status, out, err = reply
    if question["kind"] == "path" and out and out[0].startswith(("directory|", "other|")):
        return status, [out[0].rpartition("|")[0]], err
    if question["kind"] != "unit":
        return reply
    lines, newest, changed = [], [], 0.0
    for line in out:
        if line.startswith("StateChangeTimestamp="):
            changed = seconds(line.partition("=")[2])
        elif line.startswith("newest "):
            newest.append(line.split(" ", 2)[1:])
        else:
            lines.append(line)
    lines += ["%s %s" % (float(stamp) > changed, path) for stamp, path in newest]
    return status, lines, err


def ask(questions):
    """(digest of all answers as the engine computes it, digest of the lasting part of each)."""
    QUESTIONS[:] = questions
    answers = [answer(question) for question in QUESTIONS]
    each = [sha256(json.dumps(lasting(*pair))) for pair in zip(QUESTIONS, answers)]
    return sha256(json.dumps(answers)), each


def asked_digest(text):
    """Digest of the questions and this program: another program may keep other parts of an answer."""
    with open(__file__) as handle:
        return sha256(text + handle.read())


def by_role(about, differs):
    """Operations with at least one different answer, counted for each role with questions."""
    askers = [name.partition(" | ") for name in about.get("askers", [])]
    found = {role: set() for role, _, operation in askers if operation}
    for (role, _, operation), other in zip(askers, differs):
        if operation and other:
            found[role].add(operation)
    return {role: len(operations) for role, operations in sorted(found.items())}


def unknown(reason):
    return {"state": "unknown", "reason": reason, "changed": [], "expected": None}


def loaded(text):
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def is_about(about):
    """Whether it was written by `rackwright drift install`: questions, and the operations behind them."""
    if not isinstance(about, dict):
        return False
    asked, askers = about.get("questions"), about.get("askers", [])
    lists = isinstance(asked, list) and isinstance(askers, list)
    return (
        lists and all(isinstance(one, dict) for one in asked) and all(isinstance(one, str) for one in askers)
    )


def is_expected(kept):
    """Whether it was written by `adopt`."""
    if not isinstance(kept, dict) or not isinstance(kept.get("answers"), list):
        return False
    return all(isinstance(one, str) for one in (kept.get("digest"), kept.get("asked"), *kept["answers"]))


def check():
    """The current state of this node."""
    try:
        text, kept = read("questions.json"), read("expected.json")
    except (OSError, ValueError):
        return unknown("this node has no expected answers yet")
    about, expected = loaded(text), loaded(kept)
    if not is_about(about) or not is_expected(expected):
        return unknown("questions.json or expected.json in %s is damaged: apply to this node" % FOLDER)
    if expected["asked"] != asked_digest(text):
        return unknown("the questions or this program are newer than the expected answers")
    asked = about["questions"]
    if len(asked) != len(expected["answers"]):
        return unknown("expected.json in %s has answers to other questions: apply to this node" % FOLDER)
    _, each = ask(asked)
    changed = [label(one) for one, then, now in zip(asked, expected["answers"], each) if then != now]
    return {
        "state": "drifted" if changed else "in sync",
        "changed": changed[:LISTED_MAX],
        "count": len(changed),
        "operations": by_role(about, [then != now for then, now in zip(expected["answers"], each)]),
        "expected": expected["digest"],
    }


def adopt(digest):
    text = read("questions.json")
    asked = json.loads(text)["questions"]
    found, each = ask(asked)
    if found != digest:
        sys.exit("the node changed since it was found in sync: plan and apply again")
    kept = {"digest": digest, "asked": asked_digest(text), "answers": each}
    replace(os.path.join(FOLDER, "expected.json"), json.dumps(kept), 0o600)


def last_in_sync():
    try:
        with open(os.path.join(STATE, "last.json")) as handle:
            at = float(json.load(handle)["in_sync"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return at if math.isfinite(at) else None


def quoted(value):
    """The value of a label as the text format of Prometheus has it, in one line."""
    text = "".join(one if one.isprintable() else "?" for one in str(value))
    return text.replace("\\", "\\\\").replace('"', '\\"')


def metrics():
    began = time.time()
    found = check()
    now = time.time()
    in_sync = now if found["state"] == "in sync" else last_in_sync()
    if found["state"] == "in sync":
        replace(os.path.join(STATE, "last.json"), json.dumps({"in_sync": now}), 0o644)
    try:
        about = loaded(read("questions.json"))
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict):
        about = {}
    names = about.get("cluster", ""), about.get("node", os.uname().nodename)
    where = '{cluster="%s",node="%s"}' % tuple(map(quoted, names))
    values = [
        ("drifted", "1 if the node is not as declared.", int(found["state"] == "drifted")),
        ("answers", "Answers that are not the expected ones.", found.get("count", 0)),
        ("unknown", "1 if its state is not known.", int(found["state"] == "unknown")),
        ("last_in_sync_timestamp_seconds", "When the node was last seen as declared.", in_sync),
        ("last_check_timestamp_seconds", "When the last check ended.", now),
        ("check_duration_seconds", "How long the last check took.", now - began),
    ]
    text = ""
    roles = sorted(found.get("operations", {}).items())
    if roles:
        name = "rackwright_drift_operations"
        text += "# HELP %s Operations that would change something, by role.\n# TYPE %s gauge\n" % (name, name)
        for role, count in roles:
            text += '%s%s,role="%s"} %d\n' % (name, where[:-1], quoted(role), count)
    for name, about, value in values:
        if value is not None:
            shown = "%d" % value if isinstance(value, int) else "%.3f" % value
            name = "rackwright_drift_" + name
            text += "# HELP %s %s\n# TYPE %s gauge\n%s%s %s\n" % (name, about, name, name, where, shown)
    replace(METRICS, text, 0o644)
    print(found["state"] + "".join("\n" + one for one in found["changed"]))


def main():
    signal.alarm(SECONDS)
    os.nice(10)
    os.umask(0o077)
    try:  # only root can open this file, so only root can hold its lock
        lock = os.open(os.path.join(FOLDER, "questions.json"), os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if len(sys.argv) > 1 else fcntl.LOCK_NB))
    except BlockingIOError:
        print(json.dumps(unknown("another check of this node is running")))
        return
    except FileNotFoundError:
        pass  # check() reports what that means
    if sys.argv[1:2] == ["--adopt"]:
        adopt(sys.argv[2])
    elif sys.argv[1:] == ["--metrics"]:
        metrics()
    elif len(sys.argv) == 1:
        print(json.dumps(check()))
    else:
        sys.exit("usage: rackwright-drift [--metrics | --adopt DIGEST]")


if __name__ == "__main__":
    main()
