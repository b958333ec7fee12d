"""An intruder's possible ways back into a node: keys, accounts, sudo rules, sshd's settings, setuid files, holds.

One command reads it all. Nothing in its answer depends on the time; secrets (password hashes) stay on the node.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from shlex import quote

from pyinfra.api.facts import FactBase

QUARANTINE = "/var/lib/rackwright/quarantine"
"""Where what is taken away is kept: root's alone, one folder for each removal."""
SUDOERS = "/etc/sudoers"
SSHD_CONFIG = "/etc/ssh/sshd_config"
SSHD_FOLDER = "/etc/ssh/sshd_config.d"
_LARGEST = 262_144
"""Bytes of a file that is read; of a larger one the rest could hide something."""

# Meaning of the fields: passwd(5), shadow(5); patterns of AuthorizedKeysFile: sshd_config(5), TOKENS; a password
# that begins with ! or * matches none: shadow(5). Read 2026-11-23.
_READ = r"""
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
text() {
  if ! [ -r "$4" ]; then echo "cannot|$1|read $4"
  elif [ "$(wc -c <"$4")" -gt @LARGEST@ ]; then echo "cannot|$1|read $4: it is larger than @LARGEST@ bytes"
  else printf '%s|%s|%s|' "$2" "$3" "$4" && base64 -w0 <"$4" && echo; fi
}
accounts=$(awk -F: -v extra=@USERS@ '
  BEGIN { count = split(extra, names, ","); for (i = 1; i <= count; i++) wanted[names[i]] = 1 }
  FILENAME == "/etc/shadow" { hash[$1] = $2; expires[$1] = $8; known[$1] = 1; next }
  $1 == "" || $1 ~ /^[+-]/ { next }
  { secret = ($2 == "x" && known[$1]) ? hash[$1] : $2
    gsub(/\|/, "?")
    state = secret == "" ? "empty" : (secret == "x" || secret ~ /^[!*]/) ? "locked" : "open" }
  $3 + 0 < 1000 || state == "empty" || wanted[$1] {
    print "account|" $1 "|" $3 + 0 "|" $6 "|" $7 "|" state "|" (known[$1] ? expires[$1] : "") }
' /etc/shadow /etc/passwd) && [ -n "$accounts" ] && printf '%s\n' "$accounts" || echo 'cannot|accounts|read passwd and shadow'
awk -F: -v privileged=@GROUPS@ '
  BEGIN { count = split(privileged, names, ","); for (i = 1; i <= count; i++) wanted[names[i]] = 1 }
  $1 == "" || $1 ~ /^[+-]/ { next }
  FILENAME == "/etc/group" && !again[FNR]++ { if ($1 in wanted) gids[$3] = $1; next }
  FILENAME == "/etc/group" { if (!($3 in gids)) next
    count = split($4, names, ",")
    for (i = 1; i <= count; i++) if (names[i] != "") print "member|" gids[$3] "|" names[i] "|" $1
    next }
  $4 in gids { print "member|" gids[$4] "|" $1 "|" }
' /etc/group /etc/group /etc/passwd || echo 'cannot|accounts|read the groups'
settings=$(sshd -T -C user=root,host=localhost,addr=127.0.0.1 2>&1) || {
  echo "cannot|sshd|sshd -T: $(printf %s "$settings" | tail -n 1)"; settings=; }
printf '%s\n' "$settings" | grep -E '^(port|@SETTINGS@) ' | sed 's/ /|/; s/^/sshd|/'
patterns=$(printf '%s\n' "$settings" | sed -n 's/^authorizedkeysfile //p')
if [ -n "$patterns" ]; then
  printf '%s\n' "$accounts" | awk -F'|' -v patterns="$patterns .ssh/authorized_keys" '{
    count = split(patterns, each, " ")
    for (i = 1; i <= count; i++) {
      path = each[i]
      if (path == "none" || seen[$2, path]++) continue
      gsub(/%u/, $2, path); gsub(/%U/, $3, path); gsub(/%h/, $4, path); gsub(/%%/, "%", path)
      print $3 "|" $2 "|" (path ~ /^\// ? path : $4 "/" path)
    } }' | while IFS='|' read -r uid name path; do
    # root may not look into homes on a file system that maps root to another user (root_squash)
    why=$(stat -L -- "$path" 2>&1) || case $why in
      *': No such file or directory' | *': Not a directory' | *': Too many levels of symbolic links') continue ;;
      *) echo "cannot|keys|look for $path: ${why##*: }"; continue ;;
    esac
    # a system account may have planted a link to a file that only root reads
    case ,0,,@USERS@, in *,"$uid",,*|*,"$name",*) ;; *) [ ! -L "$path" ] || { echo "keylink|$name|$path"; continue; } ;; esac
    if [ -f "$path" ]; then text keys keys "$name" "$path"; else echo "cannot|keys|read $path"; fi
  done
else
  echo 'cannot|keys|find out where sshd looks for keys'
fi
[ -r @SUDOERS@ ] && for path in @SUDOERS@ @SUDOERS@.d/*; do
  case "${path##*/}" in *.*|*~) [ "$path" = @SUDOERS@ ] || continue ;; esac
  [ ! -f "$path" ] || text sudoers sudoers - "$path"
done || echo 'cannot|sudoers|read @SUDOERS@'
[ -r @SSHD@ ] && for path in @SSHD@ @SSHD@.d/*.conf; do
  [ ! -f "$path" ] || text sshd config - "$path"
done || echo 'cannot|sshd|read @SSHD@'
if command -v find >/dev/null && [ -d /etc ]; then
  find @PATHS@ -xdev -path @QUARANTINE@ -prune -o \( -type f \( -perm /6000 -o -perm -0002 \) \
    -o -type d -perm -0002 ! -perm -1000 \) -printf '%y %m %p\0' 2>/dev/null | tr '\n\0' '\001\n' | sort |
    awk '/\001/ { gsub(/\001/, "?"); sub(/^[^ ]* [^ ]* /, ""); print "cannot|loose|repair " $0 ": its name holds a line break"; next }
      { print "loose|" $0 }'
else
  echo 'cannot|loose|run find'
fi
held=$(@HELD@) && printf '%s\n' "$held" | grep . | sort | sed 's/^/hold|/' || [ -z "${held?}" ] || echo 'cannot|holds|list held packages'
echo end"""

SETTINGS = (
    "authorizedkeyscommand",
    "authorizedkeysfile",
    "authorizedprincipalscommand",
    "authorizedprincipalsfile",
    "forcecommand",
    "kbdinteractiveauthentication",
    "passwordauthentication",
    "permitemptypasswords",
    "permitrootlogin",
    "permituserenvironment",
    "pubkeyauthentication",
    "trustedusercakeys",
)
"""Settings of sshd that decide who gets in, as `sshd -T` prints them."""


@dataclass(frozen=True)
class Account:
    """A line of passwd, with the state of its password from shadow: open, locked or empty."""

    name: str
    uid: int
    home: str
    shell: str
    password: str
    expires: str

    @property
    def is_closed(self) -> bool:
        """Locked, expired and without a shell: what the repair of an undeclared uid 0 leaves."""
        return self.password == "locked" and self.expires == "1" and self.shell.endswith("/nologin")


@dataclass(frozen=True)
class Member:
    """A member of a group whose members can become root."""

    group: str
    user: str
    through: str
    """The line of /etc/group, of the same number or the group's own; empty: it is the user's primary group."""


@dataclass(frozen=True)
class KeyFile:
    """An authorized_keys file of an account."""

    user: str
    path: str
    text: str


@dataclass(frozen=True)
class Loose:
    """A setuid or setgid file, or something that everyone may write."""

    kind: str
    """f: a file, d: a directory."""
    mode: str
    path: str


@dataclass
class Traces:
    """All of it; `unknown` has why a part could not be read: keys, accounts, sudoers, sshd, loose, holds."""

    accounts: list[Account] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    keys: list[KeyFile] = field(default_factory=list)
    key_links: list[KeyFile] = field(default_factory=list)
    """Symbolic links in place of key files, of accounts that are not root's equal; their text is not read."""
    sudoers: dict[str, str] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    """sshd's configuration files."""
    settings: dict[str, str] = field(default_factory=dict)
    """sshd's effective settings, keys in lower case."""
    ports: set[int] = field(default_factory=set)
    """Where sshd listens."""
    loose: list[Loose] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)


def parse_traces(lines: list[str]) -> Traces:
    """Read what the fact's command printed; ValueError where it did not come to its end."""
    if not lines or lines[-1] != "end":
        raise ValueError("the answer is incomplete")
    found = Traces()
    for line in lines[:-1]:
        tag, _, rest = line.partition("|")
        _note(found, tag, rest)
    return found


def _note(found: Traces, tag: str, rest: str) -> None:
    if tag == "account":
        name, uid, home, shell, password, expires = rest.split("|")
        found.accounts.append(Account(name, int(uid), home, shell, password, expires))
    elif tag == "member":
        group, user, through = rest.split("|")
        found.members.append(Member(group, user, through))
    elif tag == "keys":
        user, path, content = rest.split("|")
        found.keys.append(KeyFile(user, path, _decoded(content)))
    elif tag == "keylink":
        user, path = rest.split("|")
        found.key_links.append(KeyFile(user, path, ""))
    elif tag in ("sudoers", "config"):
        _, path, content = rest.split("|")
        (found.sudoers if tag == "sudoers" else found.configs)[path] = _decoded(content)
    elif tag == "sshd":
        key, _, value = rest.partition("|")
        if key == "port":
            found.ports.add(int(value))
        else:
            found.settings[key] = value
    elif tag == "loose":
        kind, mode, path = rest.split(" ", 2)
        found.loose.append(Loose(kind, mode, path))
    elif tag == "hold":
        found.holds.append(rest)
    elif tag == "cannot":
        part, _, why = rest.partition("|")
        found.unknown[part] = why
    else:
        raise ValueError(f"unreadable line {tag[:40]!r}")


def _decoded(content: str) -> str:
    try:
        return base64.b64decode(content, validate=True).decode("utf-8", "surrogateescape")
    except binascii.Error as error:
        raise ValueError(f"unreadable content of a file: {error}") from error


class NodeTraces(FactBase[Traces]):
    """All of it in one command: of system accounts and of these users, below these paths."""

    def command(
        self, users: tuple[str, ...], groups: tuple[str, ...], paths: tuple[str, ...], held: str
    ) -> str:
        """`groups`: whose members to read. `held` is the family's command that prints the names of held packages."""
        words = {
            "@USERS@": quote(",".join(users)),
            "@GROUPS@": quote(",".join(groups)),
            "@SETTINGS@": "|".join(SETTINGS),
            "@LARGEST@": str(_LARGEST),
            "@SUDOERS@": SUDOERS,
            "@SSHD@": SSHD_CONFIG,
            "@PATHS@": " ".join(quote(path) for path in paths),
            "@QUARANTINE@": QUARANTINE,
            "@HELD@": held,
        }
        text = _READ
        for word, value in words.items():
            text = text.replace(word, value)
        return text

    @staticmethod
    def default() -> Traces:
        return Traces()

    def process(self, output: list[str]) -> Traces:
        return parse_traces(output)
