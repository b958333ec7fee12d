"""The home role: quotas that undo each other, and folders in which no home can be made."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rackwright.model.cluster import Node
from rackwright.model.storage import FilesystemKind, FilesystemPurpose, Quota
from rackwright.roles.home import layout
from rackwright.roles.home.options import HomeOptions
from rackwright.roles.nfs_server.options import NfsServerOptions
from tests.unit.roles.storage_sites import Makes, nfs
from tests.unit.roles.test_home import USERS, XFS, home_site, homes

DEFAULT = {"gib": 100, "files": 1000000}


def quota(**changes):
    return Quota.model_validate({**DEFAULT, **changes})


def second(**changes):
    fields = {"purpose": FilesystemPurpose.HOME, "export": "/srv/staff", "nodes": ("gpu2",), **changes}
    return nfs("staff", "/shared/staff", "head1", **fields)


class Declares(Makes):
    """Filesystems with an owner and a mode."""

    access: dict[str, tuple[str, str]]

    def made_access(self, node: Node) -> Mapping[str, tuple[str, str]]:
        return self.access


# Limits


@pytest.mark.parametrize(
    ("own", "limits"),
    [
        ({"gib": 500}, (500, 1000000)),
        ({"files": 5}, (100, 5)),
        ({"gib": 500, "files": 5}, (500, 5)),
        (None, (100, 1000000)),
    ],
)
def test_what_a_user_s_limits_leave_out_is_the_default(own, limits):
    """XFS writes the default over a limit of 0 (xfs_qm_adjust_dqlimits): the plan would never be empty."""
    given = quota(users={"alice": own} if own else {}).of("alice")
    assert (given.gib, given.files) == limits


def test_a_user_s_limits_without_a_default_are_all_there_is():
    given = Quota.model_validate({"users": {"alice": {"gib": 500}}})
    assert layout.limit(given, "alice") == (500 * 2**20, 0)
    assert layout.limit(given, "bob") == layout.limit(given) == (0, 0)


def problems(made):
    return list(made.primary.options["home"].problems(made))


def test_two_filesystems_on_one_xfs_have_the_same_limits():
    both = home_site(homes(quota=quota()), second(quota=quota(gib=50)), makes=XFS)
    assert problems(both) == [
        (
            "",
            "storage.home and storage.staff have different quotas, but XFS has one limit for each user on /srv of head1.",
            "give both the same limits, or each a separate filesystem under `roles.storage_layout.filesystems`",
        )
    ]
    one_user = home_site(homes(quota=quota(users={"bob": {"gib": 5}})), second(quota=quota()), makes=XFS)
    assert ["different quotas" in message for _, message, _ in problems(one_user)] == [True]


@pytest.mark.parametrize(
    ("other", "made"),
    [
        (second(quota=quota()), XFS),
        (second(), XFS),  # the limits of `home` count what is in `staff`, too
        (
            second(quota=quota(gib=50)),
            Makes(
                made={"/srv/home": "xfs", "/srv/staff": "xfs"},
                options={"/srv/home": ("uquota",), "/srv/staff": ("uquota",)},
            ),
        ),
    ],
)
def test_filesystems_that_do_not_undo_each_other(other, made):
    assert problems(home_site(homes(quota=quota()), other, makes=made)) == []


# Access


def site_with(*filesystems, nfs_server=None, makes=None):
    made = home_site(*filesystems, makes=makes)
    options = {"access": USERS, "home": HomeOptions(), **({"makes": makes} if makes else {})}
    if nfs_server is not None:
        options["nfs_server"] = nfs_server
    return made.model_copy(update={"nodes": tuple(one.with_options(options) for one in made.nodes)})


@pytest.mark.parametrize(
    ("mode", "refused"), [(None, False), ("711", False), ("1777", True), ("775", True), ("757", True)]
)
def test_no_home_is_made_in_an_export_that_others_write(mode, refused):
    options = NfsServerOptions(modes={"home": mode} if mode else {})
    message = f"The folder of homes /srv/home on head1 has owner root and mode {mode}: homes are created only in a folder that root alone owns and can write."
    assert problems(site_with(homes(), nfs_server=options)) == (
        [("", message, "e.g. `nfs_server: {modes: {home: '755'}}`")] if refused else []
    )


@pytest.mark.parametrize(
    ("access", "refused"),
    [(("root", "755"), False), (("root", "1777"), True), (("root", "770"), True), (("alice", "755"), True)],
)
def test_no_home_is_made_on_a_filesystem_that_others_own_or_write(access, refused):
    own = Declares(made={"/srv/home": "xfs"}, access={"/srv/home": access})
    hint = "e.g. `storage_layout: {filesystems: {/srv/home: {owner: root, mode: '755'}}}`"
    found = problems(site_with(homes(), nfs_server=NfsServerOptions(), makes=own))
    assert [given for _, _, given in found] == ([hint] if refused else [])
    local = homes(kind=FilesystemKind.LOCAL, servers=(), export=None)
    own = Declares(made={"/shared/home": "xfs"}, access={"/shared/home": access})
    assert [given for _, _, given in problems(site_with(local, makes=own))] == (
        [hint.replace("/srv/home", "/shared/home")] if refused else []
    )


def test_a_folder_below_a_filesystem_is_the_server_s_own():
    """storage_layout's mode of /srv does not matter: nfs_server makes /srv/home below it."""
    own = Declares(made={"/srv": "xfs"}, access={"/srv": ("root", "1777")})
    assert problems(site_with(homes(), nfs_server=NfsServerOptions(), makes=own)) == []
