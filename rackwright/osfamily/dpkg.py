"""Shell scripts that find what is broken in dpkg's database, and repair it.

Packages that dpkg did not finish (dpkg(1), PACKAGE STATES: half-installed, unpacked, half-configured, waiting
triggers; flag reinst-required), and dependencies that were removed by force. What apt would do about it is
asked of apt itself: apt-get(8), --fix-broken with --simulate. Both manuals read 2026-11-23.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from rackwright.osfamily import apt

_SIMULATE = "LC_ALL=C apt-get -s -o Debug::NoLocking=1 --no-install-recommends -f install"
_MERGED = """\
merged=
  if [ -n "$(ls /var/lib/dpkg/updates)" ] && merged=$(mktemp -d); then
    cp -r /var/lib/dpkg/status /var/lib/dpkg/updates "$merged" && mkdir "$merged/info" &&
      dpkg --admindir="$merged" --set-selections </dev/null || { rm -rf "$merged"; merged=; }
  fi 2>/dev/null
"""
"""A dpkg that was interrupted leaves its last changes in updates/, which dpkg-query reads and apt does not.

They are merged in a copy, for apt to see; in the database itself `dpkg --configure` merges them.
"""

# Dependencies are compared by name: apt itself takes ten times as long, and this is asked in every plan.
QUERY = (
    r"""found=$(dpkg-query -W -f \
  '${db:Status-Abbrev}\t${Package}\t${Version}\t${Provides}\t${Pre-Depends}, ${Depends}\n' |
awk -F '\t' '
{ state = substr($1, 2, 1) }
state ~ /[HUFWt]/ || substr($1, 3, 1) == "R" { gsub(/ /, "", $1); print "broken", $2, $1 }
state ~ /[UFWti]/ {
  there[$2] = 1
  n = split($4, names, /, */)
  for (i = 1; i <= n; i++) { sub(/[ (:].*/, "", names[i]); there[names[i]] = 1 }
}
state ~ /[Wti]/ { needs[$2] = $5 }
END {
  for (package in needs) {
    n = split(needs[package], groups, /, */)
    for (i = 1; i <= n; i++) {
      if (groups[i] == "") continue
      met = 0
      m = split(groups[i], any, / *[|] */)
      for (j = 1; j <= m; j++) { sub(/[ (:[].*/, "", any[j]); met = met || any[j] in there }
      if (!met) print "unmet", package, any[1]
    }
  }
  if (NR) print "read"
}' | LC_ALL=C sort)
printf '%s\n' "$found"
case "$found" in *broken\ * | *unmet\ *)
  """
    + _MERGED
    + "  "
    + _SIMULATE
    + r""" ${merged:+-o "Dir::State::status=$merged/status"} 2>&1 | awk '
/^(Inst|Remv) / { v = $0; sub(/^[^[(]*(\[[^]]*\] )?[[(]/, "", v); sub(/[] )].*/, "", v); print $1, $2, v }
/^E: / { sub(/^E: /, ""); print "cannot", $0 }'
  [ -z "$merged" ] || rm -rf "$merged" ;;
esac
: """
)

_FIX = """\
now=$({simulate} | awk '{wanted} {{ print $1, $2 }}' | LC_ALL=C sort)
[ "$now" = {planned} ] || {{
  echo "apt would now do something that the plan does not show, plan again: $now" >&2
  exit 1
}}
patiently apt-get -q -y --no-install-recommends -o Acquire::Retries=2 \\
  -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold -f install
patiently {configure}"""


def repair(install: Iterable[str], remove: Iterable[str], *, simulated: bool, wait_seconds: int) -> str:
    """Shell that finishes what dpkg began, then has apt put dependencies right.

    It refuses to install or remove anything but these packages; not `simulated`: to remove any package.
    """
    lines = [*(f"Inst {name}" for name in install), *(f"Remv {name}" for name in remove)]
    act = _FIX.format(
        simulate=_SIMULATE,
        wanted="/^(Inst|Remv) /" if simulated else "/^Remv /",
        planned=quote("\n".join(sorted(lines)) if simulated else ""),
        configure=apt.CONFIGURE,
    )
    return apt.script(
        act,
        wait_seconds=wait_seconds,
        configure=f"patiently {apt.CONFIGURE} || :",  # a dependency may be missing that apt is to bring
        must_update=not simulated,
    )
