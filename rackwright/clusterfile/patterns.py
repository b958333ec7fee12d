"""Messages and examples for text options that do not match their pattern."""

from __future__ import annotations

from rackwright.clusterfile.kubernetes_patterns import KUBERNETES_PATTERNS
from rackwright.clusterfile.machine_patterns import MACHINE_PATTERNS
from rackwright.clusterfile.monitoring_patterns import MONITORING_PATTERNS

_LABEL_RULE = "letters, digits, `_` and `-`, a letter first, at most 40 characters"
_FILE_RULE = "letters, digits, `.`, `_` and `-` between slashes"

PATTERNS: dict[str, tuple[str, str]] = {
    r"^[a-z][a-z0-9_.-]{0,39}$": (
        "Not a valid name: lower-case letters, digits, `_`, `.` and `-`, a letter first, at most 40 characters.",
        "physics",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$": (
        "Not a valid name: letters, digits, `_`, `.` and `-`, at most 64 characters.",
        "scratch",
    ),
    r"^[a-z][a-z_]{0,11}$": (
        "Not a valid name of a set of drives: lower-case letters and `_`, at most 12 characters, without digits.",
        "data",
    ),
    r"^[a-z0-9][a-z0-9_-]{0,30}$": (
        "Not a valid name of a folder: lower-case letters, digits, `_` and `-`, at most 31 characters.",
        "tmp",
    ),
    r"^[A-Z_][A-Z0-9_]{0,62}$": (
        "Not a valid name of a variable: capitals, digits and `_`, at most 63 characters.",
        "SCRATCH",
    ),
    r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$": (
        f"Not a valid relative path: {_FILE_RULE}, none at the beginning.",
        "sets/imagenet",
    ),
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_][A-Za-z0-9._/-]*$": (
        "Not a valid remote of rclone: its name, a colon, a bucket and a folder.",
        "store:datasets/imagenet",
    ),
    r"^[A-Za-z][A-Za-z0-9_-]{0,39}$": (f"Not a valid name: {_LABEL_RULE}.", "train"),
    r"^[a-z][a-z0-9_]{0,31}$": (
        "Not a valid name: lower-case letters, digits and `_`, a letter first, at most 32 characters.",
        "slurm_acct_db",
    ),
    r"^0x[0-9a-f]{16}$": ("Not a GUID: 0x and 16 hexadecimal digits in lower case.", "0x0c42a10300a1b2c3"),
    r"^[A-Z0-9][A-Za-z0-9_]{2,31}$": ("Not a valid PSID of a card, as its board_id has it.", "MT_0000000838"),
    r"^[a-z0-9_-]+$": ("Not a valid name: lower-case letters, digits, `_` and `-`.", "h100"),
    r"^[A-Za-z0-9@._-]+$": ("Not a valid user name.", "robot@example.com"),
    r'^[^|"\\\n]*$': (
        'The text must not contain `|`, `"`, a backslash or a line break.',
        "Physics department",
    ),
    r"^\d{1,3}(hour|day|month)s?$": ("Not a valid age: a number with hours, days or months.", "12months"),
    r"^[a-z]+(/[A-Za-z0-9:_.-]+)?$": ("Not a valid resource of Slurm.", "gres/gpu"),
    r"^\d{4,5}-\d{4,5}$": ("Not a valid range of ports.", "60001-63000"),
    r"^[A-Za-z0-9_.:+-]{1,64}$": (
        "Not a valid name of a process: letters, digits, `_`, `.`, `:`, `+` and `-`, at most 64 characters.",
        "node_exporter",
    ),
    r"^[A-Za-z0-9 .,:/()_+-]{1,100}$": (
        "Not a valid comment: letters, digits, spaces and `.,:/()_+-`, at most 100 characters.",
        "Prometheus of the site",
    ),
    r"^(/[A-Za-z0-9._%-]+)+$": (
        f"Not a valid absolute path: {_FILE_RULE}; `%` is allowed.",
        "/var/spool/slurmctld",
    ),
    r"^(/[A-Za-z0-9._-]+)+$": (f"Not a valid absolute path: {_FILE_RULE}.", "/var/lib/node-exporter"),
    r"^[a-z_][a-z0-9_-]{0,30}$": (
        "Not a valid user name: lower-case letters, digits, `_` and `-`, a letter or `_` first, at most 31 characters.",
        "admin",
    ),
    r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$": (
        "Not a valid group name: letters, digits, `_`, `.`, `@` and `-`, at most 64 characters.",
        "hpc-admins",
    ),
    r"^([a-z_][a-z0-9_-]{0,30}@)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$": (
        "Not a valid jump host: write `user@host` or `user@host:port`.",
        "admin@bastion.example.com:22",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9@._:-]{0,199}$": ("Not a valid name of a systemd unit.", "nfs-client.target"),
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$": (
        "Not a valid name of an interface or block device: letters, digits, `_`, `.` and `-`, at most 15 characters.",
        "bond0",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9+._:-]{0,199}$": ("Not a valid name of a package.", "linux-headers-amd64"),
    r"^[A-Za-z0-9][A-Za-z0-9+._~-]{0,254}$": ("Not a valid name of a file.", "apptainer_1.4.5_amd64.deb"),
    r"^[0-9][A-Za-z0-9._+~-]{2,63}$": ("Not a kernel release as `uname -r` prints it.", "6.8.0-139-generic"),
    r"^[0-9A-Za-z][0-9A-Za-z._+~:() -]{0,63}$": ("Not a valid version.", "580.65.06"),
    r"^[a-z][a-z0-9-]{0,30}$": (
        "Not a valid name: lower-case letters, digits and `-`, a letter first, at most 31 characters.",
        "docker-io",
    ),
    r"^(0x)?[0-9a-f]{16}$": ("Not a GUID: 16 hexadecimal digits in lower case.", "0x0002c903000e0b72"),
    r"^[A-Za-z0-9_./ -]{0,30}[{]port[}][A-Za-z0-9_./ -]{0,30}$": (
        "Not a rule for names of ports: it contains `{port}` once, with letters, digits, spaces, `_`, `.`, `/` and `-`.",
        "swp{port}",
    ),
    r"^[A-Za-z0-9_]{1,80}$": ("Not a valid name: letters, digits and `_`.", "RMIntrLockingMode"),
    r"^[A-Za-z]+(/[A-Za-z0-9:_.-]+)?$": ("Not a valid resource of Slurm.", "GRES/gpu"),
    r"^[A-Za-z][A-Za-z0-9_]*(=[A-Za-z0-9_.:+*-]+)?$": (
        "Not a valid parameter of Slurm's scheduler: `name` or `name=value`, one each.",
        "bf_window=10080",
    ),
    r"^[A-Za-z0-9$][A-Za-z0-9@._$+-]{0,127}$": ("Not a valid user name of a registry.", "robot"),
    r"^/": ("Not an absolute path.", "/scratch"),
    r"^https?://\S+$": ("Not a valid http or https URL.", "https://mirror.example.com/cuda"),
    r"^https?://[A-Za-z0-9./:_-]+$": ("Not a valid http or https URL.", "https://mirror.example.com/docker"),
    r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$": (
        "Not a valid http or https URL of a host.",
        "https://registry.example.com:5000",
    ),
    r"^[a-z0-9][A-Za-z0-9./:@_-]*$": ("Not a valid image name.", "registry.example.com:5000/pause:3.10"),
    r"^[0-9]+\.[0-9]+\.[0-9]+$": ("Not a valid release: three numbers.", "1.4.2"),
    r"^[0-9]+(\.[0-9]+)+$": ("Not a valid version.", "580.65.06"),
    r"^[0-9][0-9A-Za-z.+~-]*$": ("Not a valid package version.", "2.5.1-1"),
    r"^[0-9][A-Za-z0-9.+~:-]*$": ("Not a valid package version.", "24.11.5-1"),
    r"^[0-9A-F]{40}$": (
        "Not a valid fingerprint: 40 upper-case hexadecimal digits without spaces.",
        "0123456789ABCDEF0123456789ABCDEF01234567",
    ),
    r"^[A-Za-z0-9 -]+$": ("Not valid options: letters, digits, spaces and `-`.", "-noI -noD"),
    r"^[0-9a-f]{4}:[0-9a-f]{4}$": (
        "Not a valid PCI ID: vendor and device as lspci -n prints them.",
        "10de:2330",
    ),
    r"^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$": (
        "Not a PCI address with its domain in lower case, as lspci -D prints it.",
        "0000:1b:00.0",
    ),
    r"^(/[A-Za-z0-9_][A-Za-z0-9._-]*)+$": (f"Not a valid absolute path: {_FILE_RULE}.", "/shared"),
    r"^(\d+-\d{2}:\d{2}:00|\d{1,3}:\d{2}:00)$": ("Not a time in whole minutes.", "2-00:00:00"),
    r"^[0-9]+(\.[0-9]+){1,3}$": ("Not a valid release.", "5.0.10"),
    r"^[0-9]+\.[0-9]$": ("Not a compute capability.", "9.0"),
    r"^[0-9]{1,2}\.[0-9]$": ("Not a compute capability.", "9.0"),
    r"^[0-9a-f]{64}$": (
        "Not a SHA-256: 64 lower-case hexadecimal digits, as `sha256sum` prints them.",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
    r"^[1-9]\d{0,3}(hour|day|month)s?$": (
        "Not a valid age: a number with hours, days or months.",
        "12months",
    ),
    r"^[A-Za-z0-9:_+-]+$": ("Not a valid list of ciphers.", "ECDHE-RSA-AES256-GCM-SHA384"),
    r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$": (
        "Not a valid host name or address.",
        "db1.example.com",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9._+~-]*\.tar\.(gz|bz2|xz)$": ("Not the name of a tar file.", "ucx-1.20.0.tar.gz"),
    r"^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}$": (
        "Not a valid word: letters, digits, `_`, `.` and `-`, no `-` first, at most 64 characters.",
        "fast-network",
    ),
    r"^[A-Za-z0-9_@%+=:,./ -]+$": ("Not a valid flag: no quotes, no shell characters.", "--enable-mt"),
    r"^[A-Za-z][A-Za-z0-9_.-]{0,39}$": (
        "Not a valid name: letters, digits, `_`, `.` and `-`, a letter first, at most 40 characters.",
        "matlab",
    ),
    r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$": (
        "Not a valid name: letters, digits, `_`, `.` and `-`, a letter first, at most 64 characters.",
        "maintenance",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$": (
        "Not the name of a kernel module: letters, digits, `_` and `-`.",
        "ib_umad",
    ),
    r"^[A-Za-z0-9_.,:=/@%+~^-]{1,255}$": (
        "Not a value for the kernel: one word, without quotes and what a shell would read.",
        "1-3,5",
    ),
    r"^[0-9][A-Za-z0-9.+:~_-]{0,99}$": ("Not the version of a package.", "6.8.0-139.139"),
    r"^[a-z][a-z0-9_]{0,14}$": (
        "Not a valid name: lower-case letters, digits and `_`, a letter first, at most 15 characters.",
        "scratch",
    ),
    r"^[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)?$": (
        "Not an array, a disk or a volume: its name, or the volume group and the volume with `/` between.",
        "data/homes",
    ),
    r"^[A-Za-z0-9:.+-]{4,64}$": (
        "Not the slot of a disk: its PCI address, or udev's ID_PATH.",
        "0000:05:00.0",
    ),
    r"^[A-Za-z0-9._-]+$": ("Not a valid label: letters, digits, `.`, `_` and `-`.", "scratch"),
    r"^[A-Za-z0-9_.:=-]+$": ("Not an option of mount: one word, without commas.", "noatime"),
    r"^[0-7]{3,4}$": ("Not a mode: three or four octal digits.", "0755"),
    r"^[^\s|]+$": ("The text must not contain spaces or `|`.", "nfs1:/export/slurm"),
    r"^[a-z0-9.-]+$": ("Not a valid type of file system.", "nfs4"),
    r"^[a-z][a-z0-9_]{0,62}$": (
        "Not a valid name: lower-case letters, digits and `_`, a letter first, at most 63 characters.",
        "slurmdbd_password",
    ),
    r"^([A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*)?$": (
        f"Not a folder below the mount point: {_FILE_RULE}, no slash first or last.",
        "bench",
    ),
    r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$": (
        "Not a valid name: letters, digits, `_`, `.` and `-`, at most 64 characters.",
        "ada",
    ),
    r"^[A-Za-z][A-Za-z0-9-]{0,62}$": (
        "Not an attribute of LDAP: letters, digits and `-`, a letter first.",
        "sshPublicKey",
    ),
    r"^[0-7]{3}$": ("Not a mode of a folder: three octal digits.", "700"),
    r"^([A-Za-z0-9_][A-Za-z0-9._-]*/)+$": (
        f"Not a folder of a bucket: {_FILE_RULE}, and a slash last.",
        "sets/2026/",
    ),
    r"^(/[A-Za-z0-9_][A-Za-z0-9._-]*){2,}$": (
        f"Not a folder to mount on: an absolute path of two steps or more, {_FILE_RULE}.",
        "/data/sets",
    ),
    r"^[a-z][a-z0-9]{0,19}$": (
        "Not a valid name: lower-case letters and digits, a letter first, at most 20 characters.",
        "site",
    ),
    r"^[a-z0-9-]{1,40}$": ("Not a valid region: lower-case letters, digits and `-`.", "us-east-1"),
    r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$": (
        "Not a valid bucket: lower-case letters, digits, `.` and `-`, 3 to 63 characters.",
        "datasets",
    ),
    r"^[a-z0-9][a-z0-9-]*(\.[a-z0-9][a-z0-9-]*)+$": (
        "Not the whole name of a repository: labels in lower case with dots between them.",
        "software.eessi.io",
    ),
    r"^([0-9]{1,3}:)?[0-9]{1,4}\.[0-9]{1,4}([0-9A-Za-z.+_~-]{0,80})$": (
        "Not a version of a package, as the package tool prints it.",
        "20:8.3.1",
    ),
    r"^(/|[A-Za-z0-9][A-Za-z0-9._/-]{0,99})$": (
        "Not a suite of an apt archive; `/` is a flat one.",
        "stable",
    ),
    r"^[A-Za-z0-9._-]{0,200}$": ("Not a value of BeeGFS' settings: one word.", "native"),
    r"^(tune|sys|conn|quota|log)[A-Za-z0-9]{1,60}$": (
        "Not a setting of BeeGFS' client.",
        "tuneFileCacheType",
    ),
    r"^(tcp|o2ib)[0-9]{0,4}$": ("Not an LNet network: tcp or o2ib, with a number or without.", "o2ib1"),
    r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$": (
        "Not an fsid, as `ceph fsid` prints it.",
        "c92aa3a0-7c5f-4d6c-9a1c-3f2f5b0b9f0e",
    ),
    r"^[A-Za-z0-9][A-Za-z0-9_.:+-]{0,39}(/[0-9.+]+(/[0-9]{1,2}(/[0-9.]+)?)?)?$": (
        "Not a device of WEKA's `net=`: its name, MAC or PCI address, or NAME/IP/BITS/GATEWAY.",
        "ib0",
    ),
    r"^[0-9]+\.[0-9]+\.[0-9]+(\.[0-9]+)?(-[A-Za-z0-9.]+)?$": ("Not a release of WEKA.", "4.4.10"),
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:00)?$": ("Not a date with a time.", "2026-12-01T08:00"),
    **KUBERNETES_PATTERNS,
    **MONITORING_PATTERNS,
    **MACHINE_PATTERNS,
}
"""Pattern of a field to (what is wrong, an example)."""


def in_words(pattern: str) -> tuple[str, str | None]:
    """What is wrong with a text that does not match, and a hint with an example."""
    if pattern not in PATTERNS:
        return "The text is not of the form that is expected here.", None
    message, example = PATTERNS[pattern]
    return message, f"e.g. `{example}`"
