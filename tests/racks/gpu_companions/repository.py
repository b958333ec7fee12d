"""A package repository of this machine's making: NVIDIA's names and versions, none of its files.

The packages hold units and small programs that answer what the real ones answer, as far as the roles ask.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.gpu_repository import COMPANIONS, DRIVER, DRIVER_PACKAGES, REVISION

_UNIT = """\
[Unit]
Description={what}, simulated

[Service]
{service}

[Install]
WantedBy=multi-user.target
"""
_DAEMON = "#!/bin/sh\n# Simulated.\n{answers}\nexec sleep infinity\n"

# nvidia-imex-ctl -N -j: every declared node, READY where its daemon's port is open.
_IMEX_CTL = """\
#!/bin/sh
# Simulated.
[ "$*" = "-N -j" ] || { echo "Unrecognized option: $*" >&2; exit 1; }
systemctl is-active --quiet nvidia-imex || { echo "Connection to IMEX daemon failed" >&2; exit 1; }
n=0; list=
while read -r address; do
  list="$list${list:+,}\\"$n\\":{\\"status\\":\\"READY\\",\\"host\\":\\"$address\\",\\"connections\\":{},\\"version\\":\\"@DRIVER@\\"}"
  n=$((n + 1))
done </etc/nvidia-imex/nodes_config.cfg
echo "{\\"nodes\\":{$list},\\"timestamp\\":\\"11/21/2026 12:00:00.000\\",\\"status\\":\\"UP\\"}"
"""
_DCGMI = """\
#!/bin/sh
# Simulated.
case "$*" in
--version) printf '\\ndcgmi  version: @DCGM@\\n\\n'; exit 0 ;;
"discovery -l") ;;
*) echo "PARSE ERROR: $*" >&2; exit 255 ;;
esac
systemctl is-active --quiet nvidia-dcgm || { echo "Error: unable to establish a connection to the specified host: localhost"; exit 255; }
nvidia-smi -L | grep '^GPU' >/tmp/dcgmi.$$
echo "$(wc -l </tmp/dcgmi.$$) GPUs found."
sed -n 's/^GPU \\([0-9]*\\): \\(.*\\) (UUID: \\(.*\\))$/| \\1 | Name: \\2 |\\n| | PCI Bus ID: 00000000:\\1B:00.0 |\\n| | Device UUID: \\3 |/p' /tmp/dcgmi.$$
echo "4 NvSwitches found."
rm -f /tmp/dcgmi.$$
"""
_CTK = """\
#!/bin/sh
# Simulated.
spec=${NVIDIA_CTK_CDI_OUTPUT_FILE_PATH:-/var/run/cdi/nvidia.yaml}
case "$*" in
--version) echo "NVIDIA Container Toolkit CLI version @TOOLKIT@"; echo "commit: simulated" ;;
"config --in-place --set nvidia-container-runtime.mode="*" --config-file="*)
  mode=${4#*=}; file=${5#*=}
  sed -i "/^\\[nvidia-container-runtime\\]/,/^\\[/s/^mode = .*/mode = \\"$mode\\"/" "$file" ;;
"cdi generate"*)
  mkdir -p "$(dirname "$spec")"
  nvidia-smi -L | awk '
    /^GPU/ { if (n == 0 && seen) print whole; whole = $2 + 0; n = 0; seen = 1 }
    /^ +MIG/ { print whole ":" n++ }
    END { if (n == 0) print whole; print "all" }' >"$spec.new"
  mv "$spec.new" "$spec" ;;
"cdi list")
  echo "INFO[0000] Found $(wc -l <"$spec") CDI devices" >&2
  sed 's|^|nvidia.com/gpu=|' "$spec" ;;
*) echo "unknown command $*" >&2; exit 1 ;;
esac
"""
_CTK_CONFIG = """\
disable-require = false

[nvidia-container-cli]
environment = []

[nvidia-container-runtime]
log-level = "info"
mode = "auto"

[nvidia-container-runtime.modes.cdi]
default-kind = "nvidia.com/gpu"
"""
_SYSTEM = "/usr/lib/systemd/system"
_FM = _DAEMON.format(
    answers='[ "$1" = --version ] && { echo "Fabric Manager version is : @VERSION@"; exit 0; }'
)


def _files(name: str, version: str) -> dict[str, str]:
    """Files of one package, by path; scripts are programs."""
    upstream = version.partition("-")[0].rpartition(":")[2]
    sets = {
        "nvidia-fabricmanager": {
            "/usr/bin/nv-fabricmanager": _FM.replace("@VERSION@", upstream),
            f"{_SYSTEM}/nvidia-fabricmanager.service": _UNIT.format(
                what="Fabric Manager",
                service="ExecStart=/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg",
            ),
            "/usr/share/nvidia/nvswitch/fabricmanager.cfg": "LOG_LEVEL=4\n",
        },
        "nvidia-imex": {
            "/usr/bin/nvidia-imex": _DAEMON.format(answers=":"),
            "/usr/bin/nvidia-imex-ctl": _IMEX_CTL.replace("@DRIVER@", DRIVER),
            f"{_SYSTEM}/nvidia-imex.service": _UNIT.format(
                what="IMEX", service="ExecStart=/usr/bin/nvidia-imex -c /etc/nvidia-imex/config.cfg"
            ),
            "/etc/nvidia-imex/config.cfg": "LOG_LEVEL=4\n",
        },
        "datacenter-gpu-manager-4-core": {
            "/usr/bin/nv-hostengine": _DAEMON.format(answers=":"),
            "/usr/bin/dcgmi": _DCGMI.replace("@DCGM@", upstream),
            f"{_SYSTEM}/nvidia-dcgm.service": _UNIT.format(
                what="DCGM", service="ExecStart=/usr/bin/nv-hostengine -n --service-account nvidia-dcgm"
            ),
        },
        "nvidia-container-toolkit-base": {
            "/usr/bin/nvidia-ctk": _CTK.replace("@TOOLKIT@", upstream),
            "/etc/nvidia-container-runtime/config.toml": _CTK_CONFIG,
            f"{_SYSTEM}/nvidia-cdi-refresh.service": _UNIT.format(
                what="CDI",
                service="Type=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-ctk cdi generate",
            ),
            f"{_SYSTEM}/nvidia-cdi-refresh.path": (
                "[Path]\nPathChanged=/lib/modules/modules.dep\n\n[Install]\nWantedBy=multi-user.target\n"
            ),
        },
    }
    return sets.get(name, {f"/usr/share/doc/{name}/README": "Simulated.\n"})


@dataclass(frozen=True)
class Content:
    """What a package holds, where it is more than `_files` has of its name."""

    files: Mapping[str, str]
    depends: str = ""
    postinst: str = ""


def build(folder: Path, packages: Mapping[str, str], contents: Mapping[str, Content] | None = None) -> None:
    """A repository: the packages and their index, in a new folder."""
    folder.mkdir(parents=True)
    entries = []
    for name, version in packages.items():
        content = (contents or {}).get(name) or Content(_files(name, version))
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: tests <root@localhost>\n"
            + (f"Depends: {content.depends}\n" if content.depends else "")
            + "Description: replaces NVIDIA's package of this name in a test\n"
        )
        package = folder / f"{name}_{version.rpartition(':')[2]}_all.deb"
        with TemporaryDirectory() as tree:
            _lay_out(Path(tree), control, content)
            subprocess.run(
                ["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, str(package)],
                check=True, capture_output=True, timeout=240,
            )  # fmt: skip
        raw = package.read_bytes()
        digest = hashlib.sha256(raw).hexdigest()
        entries.append(f"{control}Filename: ./{package.name}\nSize: {len(raw)}\nSHA256: {digest}\n")
    (folder / "Packages").write_text("\n".join(entries))


def _lay_out(tree: Path, control: str, content: Content) -> None:
    """A package as dpkg-deb wants to find it."""
    tree.chmod(0o755)
    files = content.files
    for path, text in files.items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(0o755 if text.startswith("#!") else 0o644)
    debian = tree / "DEBIAN"
    debian.mkdir()
    (debian / "control").write_text(control)
    conffiles = [path for path in files if path.startswith("/etc/")]
    if conffiles:
        (debian / "conffiles").write_text("\n".join(conffiles) + "\n")
    reload = "systemctl daemon-reload\n" if any(path.endswith(".service") for path in files) else ""
    if script := reload + content.postinst:
        (debian / "postinst").write_text(f"#!/bin/sh\nset -e\n{script}")
        (debian / "postinst").chmod(0o755)


EVERYTHING = {**DRIVER_PACKAGES, **COMPANIONS}
OLDER_FABRICMANAGER = {"nvidia-fabricmanager": "580.95.05-1", "libnvidia-nscq": REVISION}
OLDER_DCGM = {"datacenter-gpu-manager-4-core": "1:4.5.2-1"}
NEWER = {
    "nvidia-fabricmanager": "580.200.01-1",
    "datacenter-gpu-manager-4-core": "1:4.7.0-1",
    "nvidia-container-toolkit": "1.21.0-1",
}
