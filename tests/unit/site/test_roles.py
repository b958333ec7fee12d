"""Roles, templates and a deploy beside the cluster file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rackwright as rackwright_package
from rackwright.clusterfile.load import load
from rackwright.clusterfile.roles import package_of
from rackwright.engine.render import render_node
from rackwright.factcache.cache import version_key
from rackwright.shipped import SITE_DEPLOY, deploy_of
from rackwright.verify.selection import load_checks, select
from tests.unit.site.conftest import Site


def rendered(site):
    cluster = site.load().cluster
    return render_node(cluster, cluster.by_name["worker1"])


def test_options_are_read_as_those_of_shipped_roles(site):
    site.change("cluster.yaml", "contact: the operators of this cluster", "contact: ada@example.org")
    options = site.load().cluster.by_name["worker1"].options["motd"]
    assert options.contact == "ada@example.org"
    assert package_of("motd") == "roles.motd"


def test_a_mistake_in_them_has_its_line(site):
    site.change("cluster.yaml", "contact: the operators of this cluster", "contakt: x, contact: ''")
    found = site.mistakes()
    assert all(line.startswith("motd:") for line, _ in found)
    assert next(message for _, message in found) == "Unknown key `contakt`."
    assert len(found) == 2


def test_it_is_deployed_after_the_shipped_roles(site):
    files = rendered(site)
    assert files["/etc/motd"].startswith(
        "worker1 is a node of lab. Questions: the operators of this cluster\n"
    )
    assert "/etc/slurm/slurm.conf" in files


def test_without_a_deploy_of_its_own_the_shipped_one_runs(site):
    assert deploy_of(site.file) == site.folder / "deploys/site.py"
    (site.folder / "deploys/site.py").unlink()
    assert deploy_of(site.file) == SITE_DEPLOY
    assert [message for _, message in site.mistakes()] == [
        "No deploy applies the role motd: deploys/site.py is missing beside the cluster file."
    ]


def test_its_checks_are_planned(site):
    planned = select(site.load().cluster, limit=None, roles=frozenset({"motd"})).checks
    assert [one.check.name for one in planned] == ["the message of the day is as declared"] * 3
    assert load_checks("munge")


@pytest.mark.parametrize("name", ["roles/motd/deploy.py", "templates/motd/motd.j2", "deploys/site.py"])
def test_a_change_of_any_of_its_files_is_evaluated_anew(site, name):
    before = version_key(site.load().cluster)
    path = site.folder / name
    path.write_text(path.read_text() + "\n")
    assert version_key(site.load().cluster) != before


def test_another_site_in_the_same_process_has_its_own_roles(site, tmp_path):
    other = Site(tmp_path / "other")
    other.change("templates/motd/motd.j2", "is a node of", "belongs to")
    other.change("roles/motd/options.py", '"the cluster\'s operators"', '"others"')
    other.change("cluster.yaml", "motd: {contact: the operators of this cluster}", "motd: {}")
    assert rendered(other)["/etc/motd"].startswith("worker1 belongs to lab. Questions: others")
    assert rendered(site)["/etc/motd"].startswith("worker1 is a node of lab. Questions: the operators")


def test_a_role_that_is_not_declared_is_not_imported(site):
    (site.folder / "roles/motd/options.py").write_text("raise SystemExit('imported')\n")
    site.change("cluster.yaml", "  motd: {contact: the operators of this cluster}", "  # ")
    site.load()


def test_every_mistake_of_a_role_names_file_and_line(site):
    (site.folder / "roles/motd/deploy.py").write_text("def motd(:\n")
    (site.folder / "roles/motd/verify.py").unlink()
    messages = [message for _, message in site.mistakes()]
    assert messages == ["roles/motd has no verify.py.", "roles/motd/deploy.py:1: invalid syntax."]


def test_options_that_cannot_be_imported_name_their_line(site):
    path = site.folder / "roles/motd/options.py"
    path.write_text(path.read_text().replace("class MotdOptions", "missing()\n\n\nclass MotdOptions"))
    ((line, message),) = site.mistakes()
    assert line.startswith("motd:")
    assert message.startswith("roles/motd/options.py:11: NameError: name 'missing' is not defined")


def test_options_without_their_class(site):
    (site.folder / "roles/motd/options.py").write_text("x = 1\n")
    ((_, message),) = site.mistakes()
    assert message == "TypeError: roles.motd.options defines 0 subclasses of RoleOptions, not one."


def test_a_name_that_rackwright_has(site):
    (site.folder / "roles/motd").rename(site.folder / "roles/munge")
    site.change("cluster.yaml", "  motd: {contact: the operators of this cluster}", "  # ")
    messages = [message for _, message in site.mistakes()]
    assert "The name munge of roles/munge is taken by rackwright." in messages


def test_templates_where_rackwrights_own_are_read(site):
    (site.folder / "templates/slurm").mkdir()
    ((_, message),) = site.mistakes()
    assert message == "templates/slurm is never read: rackwright has templates of that name."


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("shipped_roles()  #", "# ", "slurm"),
        ('options_for(host, "motd", MotdOptions)', "None", "motd"),
    ],
)
def test_a_declared_role_that_the_deploy_does_not_apply(site, old, new, wrong):
    site.change("deploys/site.py", old, new)
    messages = [message for _, message in site.mistakes()]
    assert f"No line of deploys/site.py applies the role {wrong}." in messages
    assert len(messages) == (1 if wrong == "motd" else len(site_roles(site)) - 1)


def site_roles(site):
    lines = site.file.read_text().split("\nroles:\n")[1].split("\nburnin:")[0].splitlines()
    return [line for line in lines if line.startswith("  ") and line[2] not in " #"]


def test_a_deploy_with_a_syntax_error(site):
    (site.folder / "deploys/site.py").write_text("if\n")
    ((_, message),) = site.mistakes()
    assert message == "deploys/site.py:1: invalid syntax."


def test_code_that_others_may_write_is_not_run(site):
    (site.folder / "roles/motd/options.py").write_text("raise SystemExit('imported')\n")
    (site.folder / "roles").chmod(0o777)
    ((_, message),) = site.mistakes()
    assert "roles/motd is not loaded: every user may write to" in message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_code_of_another_user_is_not_run(site):
    (site.folder / "roles/motd/options.py").write_text("raise SystemExit('imported')\n")
    os.chown(site.folder / "roles/motd", 12345, -1)
    ((_, message),) = site.mistakes()
    assert "belongs to another user (uid 12345) than the cluster file (uid 0)" in message


def test_an_unknown_role_names_those_of_the_site(site):
    site.change("cluster.yaml", "  motd: {contact", "  munged: {}\n  motd: {contact")
    assert ("munged: {}", "Role munged does not exist.") in site.mistakes()


def test_show_prints_them(rackwright, site):
    out = rackwright("show", site.file).out
    assert "roles.motd.contact" in out


@pytest.mark.parametrize("name", ["deploys", "deploys/site.py"])
def test_a_deploy_that_others_may_write_is_not_run(site, name):
    (site.folder / name).chmod(0o777)
    assert any(
        message.startswith("deploys/site.py is not run: every user may write to")
        for _, message in site.mistakes()
    )


def test_a_cluster_file_in_the_root_of_a_checkout_has_the_shipped_roles(site, tmp_path):
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for room in ("roles", "deploys", "templates"):
        (checkout / room).symlink_to(Path(rackwright_package.__file__).resolve().parent / room)
    site.change("cluster.yaml", "  motd: {contact: the operators of this cluster}", "  # ")
    file = checkout / "cluster.yaml"
    file.write_text(site.file.read_text())
    assert "slurm" in load(file).roles
    assert deploy_of(file) == SITE_DEPLOY
