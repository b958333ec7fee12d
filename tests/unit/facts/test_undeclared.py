"""What of a node's answer is strange, and what is not."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from rackwright.facts import undeclared
from rackwright.facts.traces import parse_traces
from rackwright.model.authorized_keys import parse_key
from tests.unit.facts.traced import (
    DECLARED,
    FOREIGN,
    OWN,
    OWN_PRINT,
    STOCK_SSHD,
    STOCK_SUDOERS,
    answer,
    coded,
    traces,
)

FOREIGN_NAME = f"authorized key ssh-ed25519 {parse_key(FOREIGN).fingerprint} (mallory@outside)"
BREAKS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
RACK = "/home/rack/.ssh/authorized_keys"


def foreign_keys(text, user="rack", declared=DECLARED, path=RACK):
    found = undeclared.keys(traces(coded("keys", user, path, text), without="keys"), declared)
    return [name for _, removed, _ in found for name in removed]


def test_a_stock_node_has_nothing_strange():
    found = traces()
    assert undeclared.keys(found, DECLARED) == []
    assert undeclared.roots(found, DECLARED) == ([], [])
    assert undeclared.passwords(found, DECLARED) == []
    assert undeclared.sudo_rules(found, DECLARED) == []
    assert undeclared.sshd_files(found, DECLARED) == []
    assert undeclared.sshd_lines(found, DECLARED, undeclared.sshd_settings(found, DECLARED)) == []
    assert not undeclared.lost_include(found)
    assert undeclared.loose(found, DECLARED) == undeclared.holds(found, DECLARED) == []


@pytest.mark.parametrize(
    "lines", [[], answer()[:-1], [*answer()[:-1], "what is this", "end"], ["keys|a|b|%%", "end"]]
)
def test_an_answer_that_is_cut_off_or_strange_is_refused(lines):
    with pytest.raises(ValueError, match=r"incomplete|unreadable"):
        parse_traces(lines)


def test_a_fingerprint_is_what_ssh_keygen_prints():
    key = parse_key(OWN)
    assert key is not None
    assert (key.kind, key.fingerprint, key.comment) == ("ssh-ed25519", OWN_PRINT, "rackwright")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# " + OWN,
        "ssh-ed25519",
        "ssh-ed25519 AAAA x",
        "ssh-rsa " + OWN.split()[1],
        "x",
        OWN.split(" rackwright")[0][:-4],
        "\udcff " + OWN.split()[1],
    ],
)
def test_what_sshd_takes_for_no_key(line):
    assert parse_key(line) is None


def test_a_key_that_hides_behind_options_is_the_one_that_counts():
    """An allowed key within quotes is text, as it is for sshd."""
    hidden = f'environment="X={OWN}",no-pty {FOREIGN}'
    assert foreign_keys(hidden) == [FOREIGN_NAME]


@pytest.mark.parametrize(
    "line",
    [
        *(f'environment="A={char}" {FOREIGN}' for char in BREAKS),
        *(f'command="x{char}y" {FOREIGN}' for char in BREAKS),
        *(f"# a comment{char}\n{FOREIGN}" for char in BREAKS),
        FOREIGN.replace(" mallory", "\r mallory"),
        FOREIGN[:40] + "\r" + FOREIGN[40:],
        f"\t{FOREIGN}",
    ],
)
def test_only_a_newline_ends_a_line(line, tmp_path):
    """What Python takes for the end of a line does not hide a key that sshd reads; ssh-keygen reads as sshd does."""
    (tmp_path / "keys").write_bytes(f"{line}\n".encode())
    read = subprocess.run(
        ["ssh-keygen", "-l", "-f", tmp_path / "keys"], capture_output=True, check=True, timeout=60
    )
    assert parse_key(FOREIGN).fingerprint in read.stdout.decode(errors="replace")
    assert foreign_keys(f"{OWN}\n{line}\n") == [FOREIGN_NAME]


@pytest.mark.parametrize("char", BREAKS)
def test_a_key_within_a_comment_is_none(char):
    text = f"# old:{char}{FOREIGN}\n{OWN}{char}\n \t\r\n"
    assert foreign_keys(text) == []
    ((_, _, rest),) = undeclared.keys(
        traces(coded("keys", "rack", RACK, f"{text}{FOREIGN}\n"), without="keys"), DECLARED
    )
    assert rest == text


@pytest.mark.parametrize("char", BREAKS)
def test_a_comment_of_sudo_and_of_sshd_is_one_line(char):
    comment = f"# old:{char}Match all{char}mallory ALL=ALL\n"
    sudo = traces(coded("sudoers", "-", "/etc/sudoers", f"{STOCK_SUDOERS}{comment}"))
    assert undeclared.sudo_rules(sudo, DECLARED) == []
    sshd = traces(coded("config", "-", "/etc/ssh/sshd_config", f"{STOCK_SSHD}{comment}"))
    assert undeclared.sshd_lines(sshd, DECLARED, {}) == []


@pytest.mark.parametrize("line", ["rsa-sha2-256 AAAAB3NzaC1yc2EAAAADAQAB", "not a key", OWN[:60]])
def test_a_line_that_is_not_a_key_is_named(line):
    assert foreign_keys(f"{OWN}\n{line}\n") == ["a line that is not a key"]


def test_keys_that_are_allowed():
    restricted = f'command="/bin/backup" {FOREIGN}'
    fingerprint = parse_key(FOREIGN).fingerprint
    assert len(foreign_keys(f"{OWN}\n{FOREIGN}\n")) == 1
    for line in (fingerprint, FOREIGN):
        assert foreign_keys(restricted, declared=replace(DECLARED, keys={"rack": frozenset({line})})) == []
    only_restricted = replace(DECLARED, keys={"rack": frozenset({restricted})})
    assert foreign_keys(restricted, declared=only_restricted) == []
    assert len(foreign_keys(FOREIGN, declared=only_restricted)) == 1, "without its options it may do more"
    assert foreign_keys(FOREIGN, declared=replace(DECLARED, key_files=frozenset({RACK}))) == []
    prefixed = replace(DECLARED, key_prefixes={"rackwright-drift": 'restrict,command="check" '})
    assert foreign_keys(f'restrict,command="check" {FOREIGN}', "rackwright-drift", prefixed) == []
    assert len(foreign_keys(FOREIGN, "rackwright-drift", prefixed)) == 1


def test_the_login_user_s_keys_are_left_alone_where_its_own_is_not_known():
    unknown = replace(DECLARED, login_key=None)
    assert foreign_keys(f"{OWN}\n{FOREIGN}\n", declared=unknown) == []
    assert not unknown.judges_login_keys
    assert len(foreign_keys(f"{OWN}\n{FOREIGN}\n", "root", unknown, "/root/.ssh/authorized_keys")) == 2


def test_the_text_without_a_key_keeps_everything_else():
    text = f"# mine\n{OWN}\n{FOREIGN}\n"
    ((_, _, rest),) = undeclared.keys(traces(coded("keys", "rack", RACK, text), without="keys"), DECLARED)
    assert rest == f"# mine\n{OWN}\n"


@pytest.mark.parametrize(
    ("line", "strange"),
    [
        ("account|toor|0|/root|/bin/bash|open|", ("open", "")),
        ("account|toor|0|/root|/bin/bash|locked|", ("open", "")),
        ("account|toor|0|/root|/usr/sbin/nologin|locked|1", ("closed", "")),
        ("account|root|0|/root|/bin/bash|open|", ("", "root")),
        ("account|root|0|/root|/bin/bash|empty|", ("", "root")),
        ("account|www|33|/var/www|/usr/sbin/nologin|open|", ("", "www")),
        ("account|ada|3000|/home/ada|/bin/bash|empty|", ("", "ada")),
        ("account|ada|3000|/home/ada|/bin/bash|open|", ("", "")),
        ("account|www|33|/var/www|/usr/sbin/nologin|locked|", ("", "")),
    ],
)
def test_accounts(line, strange):
    found = traces(line)
    still_open, closed = undeclared.roots(found, DECLARED)
    kind = "open" if still_open else "closed" if closed else ""
    assert (kind, "".join(one.name for one in undeclared.passwords(found, DECLARED))) == strange
    allowed = replace(DECLARED, uid0=frozenset({"toor"}), system_logins=frozenset({"root", "www", "ada"}))
    assert undeclared.roots(found, allowed) == ([], [])
    assert undeclared.passwords(found, allowed) == []


@pytest.mark.parametrize(
    ("line", "strange"),
    [
        ("member|sudo|mallory|sudo", True),
        ("member|sudo|mallory|alias", True),
        ("member|sudo|mallory|", True),
        ("member|sudo|ada|sudo", False),
        ("member|sudo|rack|sudo", False),
        ("member|sudo|root|", False),
        ("member|docker|ada|docker", False),
        ("member|docker|ada|alias", True),
        ("member|docker|ada|", True),
    ],
)
def test_members_of_groups_that_can_become_root(line, strange):
    """The role that compares the members of docker takes others out."""
    assert bool(undeclared.members(traces(line), DECLARED)) is strange
    allowed = replace(DECLARED, root_groups=dict.fromkeys(("sudo", "docker"), frozenset({"ada", "mallory"})))
    assert undeclared.members(traces(line), allowed) == []


@pytest.mark.parametrize(
    "rule",
    [
        "mallory ALL=(ALL) NOPASSWD: ALL",
        "%sudo ALL=(ALL:ALL) NOPASSWD: ALL",
        "rack,mallory ALL=(ALL) ALL",
        "ALL ALL=(ALL) ALL",
        "Defaults !authenticate",
        "Defaults:mallory !authenticate",
        "#1000 ALL=(ALL) ALL",
        "#include /tmp/evil",
        "@includedir /tmp/evil",
        "User_Alias X = mallory",
        "mallory \\\n ALL = ALL",
        "mallory \\ \t\r\n ALL = ALL",
        "rack ,mallory ALL=(ALL) NOPASSWD: ALL",
        "#-1 ALL=(ALL) ALL",
        "@includedir /etc/sudoers.d#evil",
        "@includedir \\\n/etc/sudoers.d#evil",
        "Defaults env_keep += LD_PRELOAD",
        'Defaults env_keep += "LANG LD_LIBRARY_PATH"',
        "Defaults secure_path=/tmp/evil:/usr/bin",
        "Defaults editor=/tmp/evil, env_editor",
        "Defaults timestamp_timeout=-1",
        "Defaults:mallory env_reset",
        "Defaults env_reset, !authenticate",
    ],
)
def test_rules_of_sudo_that_nothing_declares(rule):
    text = f"{STOCK_SUDOERS}{rule}\n"
    (found,) = undeclared.sudo_rules(traces(coded("sudoers", "-", "/etc/sudoers", text)), DECLARED)
    assert (found.path, found.rest) == ("/etc/sudoers", STOCK_SUDOERS)
    assert found.lines == (" ".join(re.sub(r"\\[ \t\r]*\n", " ", rule).split()),)


@pytest.mark.parametrize(
    "before",
    [
        "# note \\",
        "#\\",
        "Defaults env_reset # note \\",
        "root ALL=(ALL:ALL) ALL # \\ \t",
        "Defaults \\\nenv_reset#\\",
    ],
)
def test_a_comment_does_not_go_on_after_a_backslash(before):
    """sudo ends a comment at the newline: the rule below it counts."""
    text = f"{STOCK_SUDOERS}{before}\nmallory ALL=(ALL) NOPASSWD: ALL\n"
    (found,) = undeclared.sudo_rules(traces(coded("sudoers", "-", "/etc/sudoers", text)), DECLARED)
    assert found.lines == ("mallory ALL=(ALL) NOPASSWD: ALL",)
    assert found.rest == f"{STOCK_SUDOERS}{before}\n"


EL_SUDOERS = """\
## Sudoers allows particular users to run various commands as
# Cmnd_Alias DRIVERS = /sbin/modprobe
Defaults   !visiblepw
Defaults    always_set_home
Defaults    match_group_by_gid
Defaults    always_query_group_plugin
Defaults    env_reset
Defaults    env_keep =  "COLORS DISPLAY HOSTNAME HISTSIZE KDEDIR LS_COLORS"
Defaults    env_keep += "MAIL PS1 PS2 QTDIR USERNAME LANG LC_ADDRESS LC_CTYPE"
Defaults    env_keep += "LC_TIME LC_ALL LANGUAGE LINGUAS _XKB_CHARSET XAUTHORITY"
# Defaults   env_keep += "HOME"
Defaults    secure_path = /sbin:/bin:/usr/sbin:/usr/bin
root\tALL=(ALL) \tALL
%wheel\tALL=(ALL)\tALL
# %wheel        ALL=(ALL)       NOPASSWD: ALL
#includedir /etc/sudoers.d
"""
UBUNTU_SUDOERS = """\
Defaults\tenv_reset
Defaults\tmail_badpass
Defaults\tsecure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
Defaults\tuse_pty
#Defaults:%sudo env_keep += "GIT_AUTHOR_* GIT_COMMITTER_*"
root\tALL=(ALL:ALL) ALL
%admin ALL=(ALL) ALL
%sudo\tALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
"""


@pytest.mark.parametrize(
    "text", [EL_SUDOERS, UBUNTU_SUDOERS, EL_SUDOERS.replace("\n", "\r\n"), "", "# no newline", "#"]
)
def test_what_the_distributions_ship(text):
    found = traces(coded("sudoers", "-", "/etc/sudoers", text))
    assert undeclared.sudo_rules(found, DECLARED) == []


def test_a_file_of_sudo_that_is_allowed_or_belongs_to_an_operation():
    line = coded("sudoers", "-", "/etc/sudoers.d/site", "ops ALL=(ALL) ALL\n")
    assert len(undeclared.sudo_rules(traces(line), DECLARED)) == 1
    assert (
        undeclared.sudo_rules(traces(line), replace(DECLARED, sudoers=frozenset({"/etc/sudoers.d/site"})))
        == []
    )


def test_the_login_user_s_rule_goes_only_where_another_is_written():
    found = traces(coded("sudoers", "-", "/etc/sudoers.d/evil", "x ALL=ALL\n"))
    assert not undeclared.login_would_lose_sudo(found, DECLARED)
    written = replace(DECLARED, login_has_sudo=True)
    assert [one.path for one in undeclared.sudo_rules(found, written)] == [
        "/etc/sudoers.d/90-rack",
        "/etc/sudoers.d/evil",
    ]
    assert undeclared.login_would_lose_sudo(found, written), "the declared file is not there yet"
    there = traces(
        coded("sudoers", "-", "/etc/sudoers.d/90-rackwright", "rack ALL=(ALL:ALL) NOPASSWD: ALL\n")
    )
    written = replace(written, sudoers=frozenset({"/etc/sudoers.d/90-rackwright"}))
    assert not undeclared.login_would_lose_sudo(there, written)
    by_group = traces(
        coded("sudoers", "-", "/etc/sudoers.d/cloud", "%adm ALL=(ALL) NOPASSWD:ALL\n"),
        without="sudoers|-|/etc/sudoers.d",
    )
    assert undeclared.login_would_lose_sudo(by_group, DECLARED)
    assert not undeclared.login_would_lose_sudo(by_group, replace(DECLARED, login_needs_sudo=False))


@pytest.mark.parametrize(
    ("rule", "enough"),
    [
        ("rack ALL=(ALL:ALL) NOPASSWD: ALL", True),
        ("rack ALL=(root) NOPASSWD:ALL", True),
        ("rack ALL = SETENV: NOPASSWD: ALL", True),
        ("ALL ALL=(ALL) NOPASSWD: ALL", True),
        ('rackwright-drift ALL=(root) NOPASSWD: /usr/bin/check ""', False),
        ("rackwright-drift ALL=(ALL) NOPASSWD: ALL", False),
        ("rack ALL=(root) NOPASSWD: /usr/bin/id", False),
        ("rack ALL=(www) NOPASSWD: ALL", False),
        ("rack web1=(ALL) NOPASSWD: ALL", False),
        ("rack ALL=(ALL) ALL", False),
        ("%backup ALL=(ALL) NOPASSWD: ALL", False),
        ("ALLY ALL=(ALL) NOPASSWD: ALL", False),
    ],
)
def test_which_rule_is_the_login_user_s_right_to_become_root(rule, enough):
    allowed = replace(
        DECLARED, login_has_sudo=True, sudoers=frozenset({"/etc/sudoers.d/50-site"}), login="rack"
    )
    found = traces(coded("sudoers", "-", "/etc/sudoers.d/50-site", f"{rule}\n"))
    assert undeclared.sudo_rules(found, allowed), "the node's own rule of rack goes"
    assert undeclared.login_would_lose_sudo(found, allowed) is not enough
    if rule.startswith("%backup"):
        found.members = traces("member|backup|rack|backup").members
        assert not undeclared.login_would_lose_sudo(found, allowed)


def test_sshd_s_files_and_effective_settings():
    evil = coded("config", "-", "/etc/ssh/sshd_config.d/10-evil.conf", "PermitUserEnvironment yes\n")
    cloud = coded(
        "config", "-", "/etc/ssh/sshd_config.d/60-cloudimg-settings.conf", "PasswordAuthentication no\n"
    )
    found = traces(evil, cloud, "sshd|permituserenvironment|yes")
    assert undeclared.sshd_files(found, DECLARED) == ["/etc/ssh/sshd_config.d/10-evil.conf"]
    assert undeclared.sshd_settings(found, DECLARED) == {"permituserenvironment": "yes"}
    allowed = replace(
        DECLARED,
        sshd_files=DECLARED.sshd_files | {"/etc/ssh/sshd_config.d/10-evil.conf"},
        sshd_settings={"permituserenvironment": frozenset({"no", "yes"})},
    )
    assert undeclared.sshd_files(found, allowed) == []
    assert undeclared.sshd_settings(found, allowed) == {}


@pytest.mark.parametrize(
    ("more", "removed"),
    [
        ("TrustedUserCAKeys /etc/evil\n", ("TrustedUserCAKeys /etc/evil",)),
        ("trustedusercakeys=/etc/evil\n", ("trustedusercakeys=/etc/evil",)),
        ("Include /tmp/evil.conf\n", ("Include /tmp/evil.conf",)),
        (
            "Match User mallory\n  PasswordAuthentication yes\n",
            ("Match User mallory", "PasswordAuthentication yes"),
        ),
    ],
)
def test_lines_of_sshd_s_main_file(more, removed):
    line = coded("config", "-", "/etc/ssh/sshd_config", f"{STOCK_SSHD}{more}")
    found = traces(line, "sshd|trustedusercakeys|/etc/evil")
    wrong = undeclared.sshd_settings(found, DECLARED)
    (one,) = undeclared.sshd_lines(found, DECLARED, wrong)
    assert (one.lines, one.rest) == (removed, STOCK_SSHD)
    allowed = replace(DECLARED, sshd_match=frozenset({"Match User mallory"}), sshd_settings={})
    left = undeclared.sshd_lines(found, allowed, {})
    assert bool(left) == more.startswith("Include")


@pytest.mark.parametrize("match", ["Match User mallory", '"match" user mallory', "Match=user mallory"])
def test_a_match_above_the_include_goes_alone(match):
    """Else the Include and the Subsystem of the file would go with the block."""
    text = f"# top\n{match}\n  PermitRootLogin yes\n{STOCK_SSHD}"
    found = traces(coded("config", "-", "/etc/ssh/sshd_config", text))
    (one,) = undeclared.sshd_lines(found, DECLARED, {})
    assert one.lines == (match, "PermitRootLogin yes", "UsePAM yes")
    assert one.rest == f"# top\n{STOCK_SSHD}".replace("UsePAM yes\n", "")
    assert undeclared.lost_include(found), "a Match above it makes it conditional"
    assert not undeclared.lost_include(found, [one])
    foreign = traces(coded("config", "-", "/etc/ssh/sshd_config", f"{match}\nInclude /tmp/evil\n"))
    assert undeclared.sshd_lines(foreign, DECLARED, {})[0].lines[-1] == "Include /tmp/evil"


SITE = "/etc/ssh/sshd_config.d/10-port.conf"


@pytest.mark.parametrize(
    ("text", "more", "port", "lost"),
    [
        ("Port 2222\n", "", 2222, True),
        ("port = 2222\n", "", 2222, True),
        ("ListenAddress 0.0.0.0:2222\n", "", 2222, True),
        ("ListenAddress [::]:2222\n", "", 2222, True),
        ("Include /root/port\n", "", 2222, True),
        ("Port 2222\n", "Port 2222\n", 2222, False),
        ("Port 2222\n", "ListenAddress [::1]:2222\n", 2222, False),
        ("Port 2222\nPort 22\n", "", 22, False),
        ("ListenAddress ::\n", "", 22, False),
        ("Port 22\n", "Port 2222\n", 22, True),
        ("X y\n", "", 2201, False),
    ],
)
def test_a_file_whose_port_rackwright_logs_in_by(text, more, port, lost):
    """A node behind a translated port (2201 here) does not listen on it, and loses nothing."""
    found = traces(
        coded("config", "-", SITE, text),
        coded("config", "-", "/etc/ssh/sshd_config", f"{STOCK_SSHD}{more}"),
        f"sshd|port|{2222 if port == 2222 else 22}",
    )
    right = replace(DECLARED, port=port)
    files, lines = undeclared.sshd_files(found, right), undeclared.sshd_lines(found, right, {})
    assert undeclared.lost_port(found, right, files, lines) == (SITE if lost else None)


def test_a_main_file_that_no_longer_reads_the_folder():
    assert undeclared.lost_include(traces(coded("config", "-", "/etc/ssh/sshd_config", "UsePAM yes\n")))


def test_loose_files_and_holds():
    found = traces("loose|f 4755 /etc/a b", "loose|d 777 /etc/c", "hold|jq")
    assert [(one.kind, one.mode, one.path) for one in undeclared.loose(found, DECLARED)] == [
        ("f", "4755", "/etc/a b"),
        ("d", "777", "/etc/c"),
    ]
    assert undeclared.holds(found, DECLARED) == ["jq"]
    allowed = replace(DECLARED, loose=frozenset({"/etc/a b", "/etc/c"}), holds=frozenset({"jq"}))
    assert undeclared.loose(found, allowed) == undeclared.holds(found, allowed) == []


def test_the_example_keys_differ():
    assert parse_key(OWN).fingerprint != parse_key(FOREIGN).fingerprint
