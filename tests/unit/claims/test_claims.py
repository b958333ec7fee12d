"""Claims that several roles make: each seen to hold, to be false and not to be known."""

from __future__ import annotations

import pytest

from rackwright.claims import accounts, files, units
from rackwright.claims.check import CheckContext, Failed, Undetermined
from rackwright.claims.packages import installed, package_state
from rackwright.model.options import RoleOptions
from rackwright.osfamily.known import os_release
from rackwright.roles.integrity.options import IntegrityOptions
from tests.factories import make_cluster, make_node
from tests.unit.roles import fake_facts
from tests.unit.roles.fake_host import FakeHost

NODE = make_node("n1", 10, primary=True)
EL = make_node("n1", 10, primary=True, os=os_release("rocky-9"))
LONG = "x" * ((1 << 20) + 1)


def on(*answers, node=NODE, always=None):
    replies = {line: answer for given in answers for line, answer in given.items()}
    host = FakeHost(replies, always)
    return CheckContext(make_cluster(node), node, RoleOptions(), host, on=lambda _: host)


@pytest.mark.parametrize(
    ("answers", "evidence"),
    [
        (fake_facts.file("/a", "x\n"), None),
        (fake_facts.file("/a", "x\n", "666"), "/a is 666 root:root, not 644 root:root"),
        (fake_facts.file("/a", "x\n", owner="ada"), "/a is 644 ada:root, not 644 root:root"),
        (fake_facts.file("/a", "x\ny\n"), "/a is not as declared: y"),
        (fake_facts.file("/a", ""), "/a is not as declared: lines are missing or in another order"),
        (fake_facts.file("/a", b"\0"), "/a is not as declared: not a text file of at most 1 MiB"),
        (fake_facts.file("/a", None), "/a is missing"),
        (fake_facts.link("/a", "/b"), "/a is a link to /b, not a file"),
        (
            dict.fromkeys(fake_facts.file("/a", ""), "directory|755|root|root|4096\n"),
            "/a is not a file but a directory",
        ),
    ],
)
def test_a_file_as_rendered(answers, evidence):
    context = on(answers)
    if evidence is None:
        assert files.as_rendered(context, {"/a": "x\n"}) == "/a"
    else:
        with pytest.raises(Failed, match=f"^{evidence}$"):
            files.as_rendered(context, {"/a": "x\n"})


def test_a_file_as_rendered_is_compared_by_digest_whatever_its_size():
    context = on(fake_facts.file("/a", LONG, digest_only=True))
    assert files.as_rendered(context, {"/a": LONG}) == "/a"


def test_all_files_that_differ_are_named():
    there = on(fake_facts.file("/a", "y"), fake_facts.file("/b", None), fake_facts.file("/c", "z"))
    with pytest.raises(Failed, match=r"^/a is not as declared: y; /b is missing; /c exists but is not"):
        files.as_rendered(there, {"/a": "x", "/b": "x", "/c": None})
    right = on(fake_facts.file("/a", "x"), fake_facts.file("/c", None))
    assert files.as_rendered(right, {"/a": "x", "/c": None}) == "/a"


def test_a_secret_stands_in_no_evidence_and_is_not_asked_for():
    context = on(fake_facts.file("/a", "old secret", digest_only=True))
    assert files.holds_secret_text(context, "/a", "old secret") == "/a"
    with pytest.raises(Failed, match=r"^/a is not as declared$"):
        files.holds_secret_text(context, "/a", "new secret")
    with pytest.raises(Failed, match=r"^/a is missing$"):
        files.holds_secret_text(on(fake_facts.file("/a", None)), "/a", b"x")


@pytest.mark.parametrize("always", [None, "", "rubbish\n", (1, "", "input/output error\n")])
@pytest.mark.parametrize(
    "claim",
    [
        lambda context: files.as_rendered(context, {"/a": "x"}),
        lambda context: files.as_rendered(context, {"/a": None}),
        lambda context: files.holds_secret_text(context, "/a", "x"),
        lambda context: files.has_access(context, "/a", "644", "root", "root"),
        lambda context: units.runs(context, "a.service"),
        lambda context: units.is_masked(context, "a.service"),
        lambda context: package_state(context, ("a",)),
        lambda context: accounts.account(context, "ada"),
        lambda context: accounts.has_ids(context, "ada", 1, 1),
    ],
)
def test_what_cannot_be_read_is_not_known(claim, always):
    with pytest.raises(Undetermined):
        claim(on(always=always))


@pytest.mark.parametrize(
    ("active", "state", "evidence"),
    [
        ("active", "enabled", None),
        ("reloading", "enabled", None),
        ("active", "static", None),
        ("active", "alias", None),
        ("failed", "enabled", "a.service is failed"),
        ("activating", "enabled", "a.service is activating"),
        ("active", "disabled", "a.service is active but disabled: it does not start at boot"),
        ("active", "masked", "a.service is masked: nothing can start it"),
        ("active", "enabled-runtime", "a.service is active but enabled-runtime: it does not start at boot"),
        ("active", "", "a.service is active but not enabled: it does not start at boot"),
    ],
)
def test_a_unit_runs_and_starts_at_boot(active, state, evidence):
    context = on(fake_facts.unit("a.service", active, state))
    if evidence is None:
        assert units.runs(context, "a.service") == "a.service is active and enabled"
    else:
        with pytest.raises(Failed, match=f"^{evidence}$"):
            units.runs(context, "a.service")


def test_a_file_with_a_mode_of_its_own():
    context = on(fake_facts.file("/a", "x", "755"))
    assert files.as_rendered(context, {"/a": "x"}, {"/a": "755"}) == "/a"
    with pytest.raises(Failed, match=r"^/a is 755 root:root, not 640 root:root$"):
        files.as_rendered(context, {"/a": "x"}, {"/a": "640"})


def test_a_unit_with_a_file_that_nothing_declares():
    node = make_node("n1", 10, primary=True, options={"integrity": IntegrityOptions()})
    evil = "/etc/systemd/system/a.service.d/evil.conf"
    ((question, told),) = fake_facts.unit("a.service").items()
    files_of_it = f"FragmentPath=/usr/lib/a.service\nDropInPaths=/usr/lib/x.conf {evil}\n"
    context = on({question: f"{told}{files_of_it}"}, node=node)
    for claim in (units.runs, lambda given, unit: units.starts_at_boot(given, unit, "why")):
        with pytest.raises(Failed, match=f"^{evil} of a.service is not declared$"):
            claim(context, "a.service")
    anywhere = on({question: f"{told}{files_of_it}"})
    assert units.runs(anywhere, "a.service"), "no role asks for it"


def test_ids_of_a_user():
    assert accounts.has_ids(on(fake_facts.account("ada", 300)), "ada", 300, 300) == "ada is 300:300"
    with pytest.raises(Failed, match="ada has uid 300 and gid 300, not 300 and 301"):
        accounts.has_ids(on(fake_facts.account("ada", 300)), "ada", 300, 301)
    with pytest.raises(Failed, match="the user ada does not exist"):
        accounts.has_ids(on(fake_facts.account("ada", None)), "ada", 300, 300)


def test_a_user_whose_groups_are_not_reported_is_not_absent():
    line = "ada:x:300:300::/home/ada:/bin/bash\n"
    answers = {line_of: line for line_of in fake_facts.account("ada", 300) if "group" not in line_of}
    with pytest.raises(Undetermined, match="`id` does not report the groups of ada"):
        accounts.account(on(answers), "ada")


@pytest.mark.parametrize("node", [NODE, EL])
def test_packages_that_are_installed(node):
    context = on(fake_facts.installed(node.family, ("a", "b")), node=node)
    assert installed(context, ("a", "b")) == "2 packages"
    with pytest.raises(Failed, match=r"^not installed: b$"):
        installed(on(fake_facts.installed(node.family, ("a", "b"), missing=("b",)), node=node), ("a", "b"))
    with pytest.raises(Undetermined):
        installed(on(node=node), ("a", "b"))


@pytest.mark.parametrize("status", ["un", "rc", "iU", "iF"])
def test_a_package_of_which_only_files_are_left_or_unpacked_is_not_installed(status):
    there = fake_facts.installed(NODE.family, ("a", "b"))
    context = on({line: text.replace("have b 1 ii", f"have b 1 {status}") for line, text in there.items()})
    with pytest.raises(Failed, match=r"^not installed: b$"):
        installed(context, ("a", "b"))
