"""What a link points to, what starts at boot, what a file's text is, which modules are loaded; and context.fact."""

from __future__ import annotations

import pytest

from rackwright.claims.check import CheckContext, Failed, Undetermined
from rackwright.claims.files import links_to, text_of
from rackwright.claims.kernel import loaded_modules
from rackwright.claims.units import is_masked, starts_at_boot
from rackwright.facts.files import AtPath
from rackwright.facts.settings import Answer
from rackwright.facts.users import UnixGroup
from rackwright.model.options import RoleOptions
from tests.factories import make_cluster, make_node
from tests.unit.roles.fake_facts import answer, asked, file, link, unit
from tests.unit.roles.fake_host import FakeHost

NODE = make_node("n1", 10, primary=True)
FOLDER = {asked(AtPath().command("/a")): "directory|755|root|root|4096\n"}


def on(answers, always=None):
    host = FakeHost(answers, always)
    return CheckContext(make_cluster(NODE), NODE, RoleOptions(), host, on=lambda _: host)


def boots(context):
    return starts_at_boot(context, "a.service", "gone after a reboot")


@pytest.mark.parametrize(
    ("claim", "answers", "evidence"),
    [
        (lambda c: links_to(c, "/a", "/b"), link("/a", "/b"), "/a"),
        (lambda c: text_of(c, "/a"), file("/a", "one\n"), "one\n"),
        (boots, unit("a.service", active="inactive"), "a.service is enabled"),
        (boots, unit("a.service", state="static"), "a.service is static"),
        (lambda c: is_masked(c, "a.service"), unit("a.service", load="masked", state=""), "a.service is masked"),
        (loaded_modules, {"cat /proc/modules": "a 1 0 - Live\nb_c 1 0 - Live\n"}, {"a", "b_c"}),
    ],
)  # fmt: skip
def test_holds(claim, answers, evidence):
    assert claim(on(answers)) == evidence


@pytest.mark.parametrize(
    ("claim", "answers", "evidence"),
    [
        (lambda c: links_to(c, "/a", "/b"), link("/a", "/c"), "/a is a link to /c, not to /b"),
        (lambda c: links_to(c, "/a", "/b"), file("/a", None), "/a is missing"),
        (lambda c: links_to(c, "/a", "/b"), FOLDER, "/a is not a link but a directory"),
        (lambda c: text_of(c, "/a"), file("/a", None), "/a is missing"),
        (lambda c: text_of(c, "/a"), file("/a", b"\0"), "/a is not a text file of at most 1 MiB"),
        (lambda c: text_of(c, "/a"), FOLDER, "/a is not a text file of at most 1 MiB"),
        (boots, unit("a.service", state="disabled"), "a.service is disabled: gone after a reboot"),
        (boots, unit("a.service", state="enabled-runtime"), "a.service is enabled-runtime: gone after a reboot"),
        (boots, unit("a.service", active="inactive", state="", load="not-found"),
         "a.service is not enabled: gone after a reboot"),
        (lambda c: is_masked(c, "a.service"), unit("a.service"), "a.service is enabled, not masked"),
        (lambda c: is_masked(c, "a.service"), unit("a.service", state="", load="not-found"), "a.service is not found, not masked"),
    ],
)  # fmt: skip
def test_is_false(claim, answers, evidence):
    with pytest.raises(Failed) as found:
        claim(on(answers))
    assert str(found.value) == evidence


@pytest.mark.parametrize("always", [None, "", (1, "", "no permission")])
@pytest.mark.parametrize(
    "claim",
    [
        lambda c: links_to(c, "/a", "/b"),
        lambda c: text_of(c, "/a"),
        boots,
        lambda c: is_masked(c, "a.service"),
        loaded_modules,
    ],
)
def test_what_the_node_does_not_report_is_not_known(claim, always):
    with pytest.raises(Undetermined):
        claim(on({}, always))


def test_a_fact_is_read_as_the_deploy_reads_it():
    assert on(answer("cat /a", "one\n")).fact(Answer, "cat /a") == "one"


def test_no_output_is_an_answer_only_where_that_was_checked():
    silent = on(answer("cat /a", ""))
    assert silent.fact(Answer, "cat /a", may_be_empty=True) is None
    with pytest.raises(Undetermined, match=r"^Answer of cat /a: the node printed nothing$"):
        silent.fact(Answer, "cat /a")


def test_output_that_a_fact_cannot_read_is_not_known():
    with pytest.raises(Undetermined, match=r"^UnixGroup cannot be read: "):
        on({asked(UnixGroup().command("a")): "a:x\n"}).fact(UnixGroup, "a")
