"""Certificates of a node's services, and the CAs that its programs trust."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.certificates.issuer import OnNode
from rackwright.certificates.read import PEM_MAX_BYTES

# The key itself is never printed. `left`: the answer, and with it the digest of the quick check, changes when the
# renewal is due although no file does, by whole days until then and each day from then on.
_READ = """\
chain={chain}; key={key}
for p in chain:"$chain" key:"$key"; do
  if [ -f "${{p#*:}}" ] && [ ! -L "${{p#*:}}" ]; then
    LC_ALL=C stat -c "${{p%%:*}} %a %U:%G" "${{p#*:}}"
  else
    echo "${{p%%:*}} absent"
  fi
done
if command -v openssl >/dev/null; then
  if [ -f "$key" ]; then
    openssl pkey -in "$key" -passin pass: -pubout -outform DER 2>/dev/null | sha256sum | sed 's/^/public /'
  fi
  end=$(openssl x509 -in "$chain" -noout -enddate 2>/dev/null | cut -d= -f2)
  if [ -n "$end" ] && end=$(LC_ALL=C date -u -d "$end" +%s); then
    left=$(( (end - $(date +%s)) / 86400 ))
    [ "$left" -lt {days} ] || left={days}
    echo "left $left"
  fi
elif [ -e "$chain" ]; then
  echo 'openssl is missing'
fi
if [ -f "$chain" ]; then head -c {limit} "$chain"; fi"""
NO_KEY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""SHA-256 of nothing: openssl printed no public key."""
_ACCESS = re.compile(r"(chain|key) (absent|[0-7]{1,4} [^ ]+:[^ ]+)")
_PUBLIC = re.compile(r"public ([0-9a-f]{64})\b.*")


def parse_certificate(lines: list[str]) -> OnNode:
    """Read what the fact's command printed; nothing at all means there is none. ValueError for anything else."""
    access: dict[str, str | None] = {"chain": None, "key": None}
    digest = None
    rest = iter(lines)
    text: list[str] = []
    for line in rest:
        if found := _ACCESS.fullmatch(line):
            access[found[1]] = None if found[2] == "absent" else found[2]
        elif found := _PUBLIC.fullmatch(line):
            digest = found[1] if found[1] != NO_KEY else None
        elif line.startswith("left ") or line == "openssl is missing":
            continue
        else:
            text = [line, *rest]
    if lines and not lines[0].startswith("chain "):
        raise ValueError(f"unreadable answer about a certificate: {lines[0][:40]!r}")
    return OnNode(access["chain"], access["key"], "\n".join(text), digest)


class CertificateAt(FactBase[OnNode]):
    """A service's certificate and the digest of its key's public half."""

    def command(self, chain: str, key: str, renew_before_days: int) -> str:
        return _READ.format(
            chain=quote(chain), key=quote(key), days=renew_before_days, limit=PEM_MAX_BYTES + 1
        )

    @staticmethod
    def default() -> OnNode:
        return OnNode()

    def process(self, output: list[str]) -> OnNode:
        return parse_certificate(output)


# A bundle is up to date where it holds a certificate's whole base64 text, however its lines are broken.
_ANCHORS = """\
cd {folder} 2>/dev/null || {{ echo none; exit 0; }}
echo folder
bundle=$(tr -d '\\r\\n' <{bundle} 2>/dev/null)
for f in {prefix}*.crt; do
  [ -f "$f" ] || [ -L "$f" ] || continue
  body=$(sed '/^-----/d' "$f" | tr -d '\\r\\n')
  case $bundle in *"$body"*) in=yes ;; *) in=no ;; esac
  [ -n "$body" ] || in=no
  LC_ALL=C stat -c "anchor $f $in $(sha256sum <"$f" | cut -d' ' -f1) %F %a %U:%G" "$f"
done"""
ANCHOR_ACCESS = "regular file 644 root:root"
_ANCHOR = re.compile(r"anchor (\S+) (yes|no) ([0-9a-f]{64}) (.+)")


@dataclass(frozen=True)
class Anchor:
    """A certificate of the site's in the node's trust store."""

    sha256: str
    in_bundle: bool
    """Programs trust it: the bundle was built since."""
    access: str
    """As stat prints it, e.g. `regular file 644 root:root`."""

    def holds(self, text: str) -> bool:
        """Whether it is this certificate, which only root may replace."""
        return self.access == ANCHOR_ACCESS and self.sha256 == hashlib.sha256(text.encode()).hexdigest()


class Anchors(FactBase[dict[str, Anchor]]):
    """By file name: certificates in the trust store with rackwright's prefix."""

    def command(self, folder: str, bundle: str, prefix: str) -> str:
        return _ANCHORS.format(folder=quote(folder), bundle=quote(bundle), prefix=quote(prefix))

    @staticmethod
    def default() -> dict[str, Anchor]:
        return {}

    def process(self, output: list[str]) -> dict[str, Anchor]:
        if output and output[0] not in ("folder", "none"):
            raise ValueError(f"unreadable answer about trusted certificates: {output[0][:40]!r}")
        found = {}
        for line in output[1:]:
            match = _ANCHOR.fullmatch(line)
            if match is None:
                raise ValueError(f"unreadable line about a trusted certificate: {line[:40]!r}")
            found[match[1]] = Anchor(match[3], match[2] == "yes", match[4])
        return found
