"""Answers a batch of questions on the node. Standard library only, Python 3.9 or newer.

Sent through stdin, run by `python3 -c`, leaves nothing behind. It reads the digest of the last
answers that were in sync and a list of questions; it prints one line of JSON: {"same": true} when the
answers still have that digest, else every answer with its digest. An answer is [exit status,
output lines, error lines], line for line what the question's shell command would have printed.
"""

import _thread
import binascii
import grp
import marshal
import os
import pwd
import stat
import sys
import time
import zlib

from rackwright.factcache.helper_base import WAITS, as_json, execute, sha256_hash, sha256_of_size

TEXT_LIMIT = 1 << 20
COMMAND_SECONDS = 300
STALLED_SECONDS = 10
LABEL_LENGTH = 120


def run(command, seconds=COMMAND_SECONDS):
    status, out, err = execute(command, seconds)
    return status, lines(out), lines(err)


def raw(question):
    """The output of a command, unchanged."""
    status, out, err = execute(question["command"], question["seconds"])
    return status, [out.decode("utf-8", "replace")], [err.decode("utf-8", "replace")]


def lines(raw):
    return raw.decode("utf-8", "surrogateescape").splitlines()


def shell(question):
    return run(question["command"])


def owner(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "UNKNOWN"


def group_name(gid):
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return "UNKNOWN"


def path(question):
    name = question["path"]
    try:
        found = os.lstat(name)
    except (FileNotFoundError, NotADirectoryError):
        return 0, ["absent"], []
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        kind = "link"
    elif stat.S_ISDIR(mode):
        kind = "directory"
    elif stat.S_ISREG(mode):
        kind = "file"
    else:
        kind = "other"
    output = [
        "%s|%o|%s|%s|%d"
        % (kind, stat.S_IMODE(mode), owner(found.st_uid), group_name(found.st_gid), found.st_size)
    ]
    if kind == "link":
        output.append(os.readlink(name))
    elif kind == "file":
        digest = sha256_of_size(found.st_size)
        content = b""
        with open(name, "rb") as handle:
            for block in iter(lambda: handle.read(1 << 20), b""):
                digest.update(block)
                if len(content) <= TEXT_LIMIT:
                    content += block
        output.append(digest.hexdigest() + "  -")
        if not question["digest_only"] and len(content) <= TEXT_LIMIT:
            output += [
                binascii.b2a_base64(content[at : at + 57], newline=False).decode()
                for at in range(0, len(content), 57)
            ]
    return 0, output, []


def sysctls(question):
    output = []
    for key in question["keys"]:
        name = "/proc/sys/" + (key if "/" in key else key.replace(".", "/"))
        try:
            with open(name) as handle:
                output.append("%s=%s" % (key, handle.read().rstrip("\n")))
        except OSError:
            pass
    return 0, output, []


def user(question):
    try:
        entry = pwd.getpwnam(question["user"])
    except KeyError:
        return 0, [], []
    names = [group_name(gid) for gid in os.getgrouplist(entry.pw_name, entry.pw_gid)]
    line = ":".join(str(field) for field in (*entry[:4], entry.pw_gecos, entry.pw_dir, entry.pw_shell))
    return 0, [line, group_name(entry.pw_gid), " ".join(names)], []


def group(question):
    try:
        entry = grp.getgrnam(question["group"])
    except KeyError:
        return 0, [], []
    return 0, ["%s:%s:%d:%s" % (entry.gr_name, entry.gr_passwd, entry.gr_gid, ",".join(entry.gr_mem))], []


class Dpkg:
    """/var/lib/dpkg/status, read once; without it the shell command answers."""

    LETTERS = {
        "install": "i", "hold": "h", "deinstall": "r", "purge": "p", "unknown": "u",
        "not-installed": "n", "config-files": "c", "half-installed": "H", "unpacked": "U",
        "half-configured": "F", "triggers-awaited": "W", "triggers-pending": "t", "installed": "i",
    }  # fmt: skip
    packages = None

    @classmethod
    def read(cls):
        if cls.packages is None:
            cls.packages = {}
            with open("/var/lib/dpkg/status", encoding="utf-8", errors="replace") as handle:
                for record in handle.read().split("\n\n"):
                    cls.note(record)
        return cls.packages

    @classmethod
    def note(cls, record):
        values = {}
        for line in record.split("\n"):
            if line.startswith(("Package: ", "Status: ", "Version: ")):
                key, _, value = line.partition(": ")
                values[key] = value
        if "Package" not in values or "Status" not in values:
            return
        want, error, state = values["Status"].split()
        letters = cls.LETTERS[want] + cls.LETTERS[state] + ("R" if error == "reinstreq" else " ")
        entry = (values.get("Version", ""), letters.strip())
        known = cls.packages.get(values["Package"])
        if known is None or known[1][1:2] != "i":
            cls.packages[values["Package"]] = entry


def dpkg_was_interrupted():
    try:
        return any(name[:1].isdigit() for name in os.listdir("/var/lib/dpkg/updates"))
    except OSError:
        return True


def marked(name, mark):
    try:
        with open(name) as handle:
            return mark in handle.read()
    except OSError:
        return False


def packages(question):
    if question["family"] != "debian" or dpkg_was_interrupted():
        return shell(question)  # after an interruption the status file is incomplete
    known = Dpkg.read()
    output, missing = [], False
    for name in question["packages"]:
        version, letters = known.get(name, ("", "un"))
        if letters != "un" and version:
            output.append("have %s %s %s" % (name, version, letters))
        missing = missing or letters[1:2] != "i"
    if missing or any(marked(name, question["mark"]) for name in question["placed"]):
        return shell(question)  # candidates need apt itself
    return 0, output, []


class Systemd:
    """`systemctl show` of every unit asked about, in one call."""

    PROPERTIES = (
        "LoadState,ActiveState,UnitFileState,NeedDaemonReload,StateChangeTimestamp,FragmentPath,DropInPaths"
    )
    shown = None

    @classmethod
    def show(cls, questions):
        units = sorted({question["unit"] for question in questions if question["kind"] == "unit"})
        if cls.shown is None:
            cls.shown = {}
            status, output, _ = run(
                ["systemctl", "show", "--timestamp=us+utc", "-p", cls.PROPERTIES, "--", *units], seconds=60
            )
            blocks = "\n".join(output).split("\n\n")
            if status == 0 and len(blocks) == len(units):
                cls.shown = {unit: block.strip().splitlines() for unit, block in zip(units, blocks)}
        return cls.shown


def newest(name):
    top = os.lstat(name).st_mtime_ns
    for folder, folders, files in os.walk(name):
        for entry in folders + files:
            try:
                top = max(top, os.lstat(os.path.join(folder, entry)).st_mtime_ns)
            except OSError:
                pass
    return top


def unit(question):
    shown = Systemd.show(QUESTIONS).get(question["unit"])
    if shown is None:
        return shell(question)
    output = list(shown)
    for name in question["watch"]:
        if os.path.exists(name):
            stamp = newest(name)
            output.append("newest %d.%09d0 %s" % (stamp // 10**9, stamp % 10**9, name))
    return 0, output, []


KINDS = {
    "shell": shell, "path": path, "sysctls": sysctls, "user": user, "group": group,
    "packages": packages, "unit": unit, "raw": raw,
}  # fmt: skip


def answer(question):
    try:
        return KINDS[question["kind"]](question)
    except Exception as error:  # noqa: BLE001 - the shell command answers instead
        if "command" in question:
            return shell(question)
        return 1, [], ["%s: %s" % (type(error).__name__, error)]


def watch():
    """Name on stderr each question that hangs: no answer comes from a filesystem whose server is away.

    A process in such a call cannot even be interrupted, but its other threads run.
    """
    before = None
    while True:
        time.sleep(STALLED_SECONDS)
        now = ASKING[-1:]
        if now and now == before:
            label = now[0].get("path") or now[0].get("unit") or " ".join(str(now[0].get("command")).split())
            os.write(2, (WAITS + label[:LABEL_LENGTH] + "\n").encode("utf-8", "replace"))
            before = None
        else:
            before = now


def asked(question):
    ASKING.append(question)
    return answer(question)


def main():
    expect = sys.stdin.buffer.readline().decode().strip()
    QUESTIONS.extend(marshal.loads(zlib.decompress(sys.stdin.buffer.read())))
    _thread.start_new_thread(watch, ())
    text = as_json([asked(question) for question in QUESTIONS])
    digest = sha256_hash(text.encode()).hexdigest()
    if digest == expect:
        output = '{"same": true}'
    else:
        output = '{"digest": "%s", "answers": %s}' % (digest, text)
    sys.stdout.write(binascii.b2a_base64(zlib.compress(output.encode(), 1), newline=False).decode())


QUESTIONS: list = []
ASKING: list = []
if __name__ == "__main__":
    main()
