"""Families and releases: every table is whole, and an unknown name is an error."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_type_hints

import pytest
from pydantic import BaseModel, ValidationError

from rackwright.osfamily import debian, el
from rackwright.osfamily.family import Family, PackageChange
from rackwright.osfamily.known import FAMILIES, RELEASES, OsFamily, OsRelease, os_family, os_release
from rackwright.osfamily.names import names
from rackwright.osfamily.release import Release

EACH_FAMILY = pytest.mark.parametrize("family", FAMILIES.values(), ids=str)
EACH_RELEASE = pytest.mark.parametrize("release", RELEASES.values(), ids=str)


class Declared(BaseModel):
    os: OsRelease
    family: OsFamily | None = None


def test_a_model_reads_names_and_writes_them():
    declared = Declared.model_validate({"os": "debian-13", "family": "el"})
    assert declared.os is os_release("debian-13")
    assert declared.family is os_family("el")
    assert declared.model_dump_json() == '{"os":"debian-13","family":"el"}'
    assert Declared(os=declared.os).os is declared.os


@pytest.mark.parametrize("value", ["debian-11", "debian", "", 13, None, ["debian-13"]])
def test_a_model_refuses_other_values_as_an_enum_does(value):
    with pytest.raises(ValidationError) as refused:
        Declared.model_validate({"os": value})
    (error,) = refused.value.errors()
    assert error["type"] == "enum"
    assert re.findall("'([^']*)'", error["ctx"]["expected"]) == list(RELEASES)


def test_unknown_names_are_errors_and_never_another_entry():
    with pytest.raises(KeyError, match="'suse' is not a known operating-system family: debian, el"):
        os_family("suse")
    with pytest.raises(KeyError, match=r"'debian-11' is not a known operating-system release: debian-12, "):
        os_release("debian-11")
    with pytest.raises(KeyError, match="The software table of the family el has no entry 'emacs'"):
        names(os_family("el"), "emacs")


def test_no_release_hides_another_one():
    assert len(RELEASES) == len(debian.RELEASES) + len(el.RELEASES)
    assert all(name == release.id == str(release) for name, release in RELEASES.items())


@EACH_FAMILY
def test_a_family_sets_every_attribute(family):
    declared = [name for name in get_type_hints(Family) if not hasattr(Family, name)]
    assert len(declared) > 10
    assert [name for name in declared if not hasattr(family, name)] == []
    assert FAMILIES[str(family)] is family


@EACH_FAMILY
def test_a_family_names_all_software(family):
    everything = {software for other in FAMILIES.values() for software in other.software}
    assert set(family.software) == everything
    for software in ("base", "chrony", "openssh", "slurmd", "schedmd/slurmd"):
        assert names(family, software).packages


@EACH_FAMILY
def test_paths_and_settings_of_software_have_the_same_keys_everywhere(family):
    optional = {"key_folder", "pin", "packaged_trust_anchor", "dhclient", "dhcpcd"}
    for software, entry in family.software.items():
        for other in FAMILIES.values():
            theirs = names(other, software)
            assert (set(entry.paths) ^ set(theirs.paths)) <= optional, software
            assert set(entry.settings) == set(theirs.settings), software
            assert (entry.unit is None) is (theirs.unit is None) or not (entry.packages and theirs.packages)


@EACH_FAMILY
def test_the_scripts_of_a_family_name_the_package(family):
    assert "'odd name'" in family.package_query(("odd name",))
    assert "'odd name'" in family.package_change(PackageChange("remove", {"odd name": None}))
    assert family.package_file("tool", "1-2", "x86_64").startswith("tool")
    image, rebuild = family.initramfs("6.1")
    assert "6.1" in image
    assert rebuild.endswith(" 6.1")


@EACH_RELEASE
def test_a_release_is_whole(release):
    hints = get_type_hints(Release)
    for field in fields(Release):
        value = getattr(release, field.name)
        assert value is not None or type(None) in hints[field.name].__args__, field.name
    assert release.family in FAMILIES.values()
    assert release.tuned_profiles in ("/etc/tuned", "/etc/tuned/profiles")
    assert release.slurm is None or re.fullmatch(r"2[0-9]\.(02|05|08|11)", release.slurm)
    assert release.podman[:2] == ("podman", "crun")
    assert set(release.container_daemons) == {"docker", "containerd"}
    assert release.docker_archive in ("debian", "ubuntu", "centos", "rhel")
    assert re.fullmatch(r"[a-z]+[0-9]+", release.nvidia.folder)
    assert re.fullmatch(r"[0-9A-F]{40}", release.nvidia.fingerprint)
    assert release.nvidia.fingerprint.endswith(release.nvidia.key_file.removesuffix(".pub").upper())
    assert release.kernel_headers


@EACH_RELEASE
def test_a_release_says_where_its_packages_come_from(release):
    by_apt = release.family.package_tool == "apt"
    of_apt = (release.codename, release.components, release.archive_keyring)
    assert all(of_apt) if by_apt else not any(of_apt)
    assert bool(release.repository_files) is not by_apt
    assert not (release.has_module_streams and by_apt)
    assert release.codename or not release.lab_image
