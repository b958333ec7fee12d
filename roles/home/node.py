"""Runs on the node that makes homes. Standard library alone, Python 3.9.

    homes.py wrong       prints `as declared`, or a line for each home that is not
    homes.py make        makes those that are missing, and sets modes
    homes.py make USER   makes the home of one user whom the node knows, e.g. one of a directory
    homes.py members     makes the homes of all members of the declared groups

A home is made in a folder that only root can write, below a name that no user has, filled from the skeleton, given to
its user and renamed: no user is there before it is whole, and no link of a user's is ever followed. What exists and
belongs to another user is left alone and reported. While the filesystem is not mounted, no home is made on the disk below.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import stat
import sys
from typing import Any

from rackwright.node_folders.mounted import Unsafe, mount_id, opened

SETTINGS = "/etc/rackwright/homes.json"
ROOT_UID = 0
LEAST_UID = 1000


class RefusedError(Exception):
    """A folder or a home that is not touched, and why."""


def check_mounted(path: str) -> None:
    """Something is mounted there; an automount does it now."""
    try:
        with opened(path) as root, opened(os.path.dirname(path)) as above:
            if mount_id(root) == mount_id(above):
                raise RefusedError(f"nothing is mounted on {path}")
    except OSError as error:
        raise RefusedError(f"{path}: {error.strerror}") from error
    except Unsafe as error:
        raise RefusedError(f"{path}: {error}") from error


def check_folder(one: dict[str, Any]) -> None:
    """Its filesystem is mounted, and only root may make anything in it."""
    folder = one["folder"]
    if one["mount"] is not None:
        check_mounted(one["mount"])
    try:
        found = os.lstat(folder)
    except OSError as error:
        raise RefusedError(f"{folder}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(f"{folder} is not a folder")
    if found.st_uid != ROOT_UID or found.st_mode & 0o022:
        mode = stat.S_IMODE(found.st_mode)
        raise RefusedError(
            f"{folder} has mode {mode:o} and belongs to uid {found.st_uid}: only root may own and write it"
        )


def fault(folder: str, user: str, uid: int, mode: int) -> str | None:
    """What is wrong with a home; None: nothing."""
    path = os.path.join(folder, user)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return f"{path} is missing"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a folder"
    if found.st_uid != uid:
        return f"{path} belongs to uid {found.st_uid}, not to {user} ({uid})"
    if stat.S_IMODE(found.st_mode) != mode:
        return f"{path} has mode {stat.S_IMODE(found.st_mode):o}, not {mode:o}"
    return None


def give(path: str, uid: int, gid: int) -> None:
    """Everything below a folder that root alone can reach, and links themselves, to a user."""
    for above, folders, files in os.walk(path):
        for name in (*folders, *files):
            os.chown(os.path.join(above, name), uid, gid, follow_symlinks=False)
    os.chown(path, uid, gid, follow_symlinks=False)


def make(folder: str, user: str, uid: int, gid: int, mode: int, skeleton: str | None) -> None:
    """A home that is missing, or the mode of one that is there."""
    path, new = os.path.join(folder, user), os.path.join(folder, f".rackwright-{user}.new")
    wrong = fault(folder, user, uid, mode)
    if wrong is None:
        return
    if os.path.lexists(path):
        if "has mode" not in wrong:
            raise RefusedError(f"{wrong}: move it aside by hand")
        # by its descriptor: the user owns the folder, and cannot rename it
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)
        return
    if os.path.lexists(new):
        shutil.rmtree(new)  # of a run that was interrupted: root's alone
    if skeleton is not None and os.path.isdir(skeleton):
        shutil.copytree(skeleton, new, symlinks=True)
    else:
        os.mkdir(new)
    os.chmod(new, 0o700)
    give(new, uid, gid)
    os.chmod(new, mode)
    os.rename(new, path)


def declared(settings: dict[str, Any]) -> list[tuple[dict[str, Any], str, int]]:
    """(filesystem, user, uid) of every declared home."""
    return [(one, user, uid) for one in settings["folders"] for user, uid in one["users"].items()]


def wrong(settings: dict[str, Any]) -> list[str]:
    """What is not as declared."""
    found = []
    for one in settings["folders"]:
        try:
            check_folder(one)
        except RefusedError as error:
            found.append(str(error))
    faults = (fault(one["folder"], user, uid, int(one["mode"], 8)) for one, user, uid in declared(settings))
    return [*found, *(one for one in faults if one is not None)]


def make_declared(settings: dict[str, Any]) -> list[str]:
    """Homes of all declared users; what could not be made."""
    failed = []
    for one, user, uid in declared(settings):
        try:
            check_folder(one)
            # a declared user's own group has the user's number
            make(one["folder"], user, uid, uid, int(one["mode"], 8), one["skeleton"])
        except RefusedError as error:
            failed.append(str(error))
        except OSError as error:
            failed.append(f"{one['folder']}/{user}: {error.strerror}")
    return list(dict.fromkeys(failed))


def make_known(one: dict[str, Any], user: str) -> list[str]:
    """The home of a user whom the node knows, on one filesystem."""
    try:
        found = pwd.getpwnam(user)
        if found.pw_uid < LEAST_UID or "/" in user or user.startswith("."):
            raise RefusedError(f"{user} (uid {found.pw_uid}) is not an ordinary user")
        check_folder(one)
        make(one["folder"], user, found.pw_uid, found.pw_gid, int(one["mode"], 8), one["skeleton"])
    except KeyError:
        return [f"there is no user {user}"]
    except RefusedError as error:
        return [str(error)]
    except OSError as error:
        return [f"{user}: {error.strerror}"]
    return []


def make_members(settings: dict[str, Any]) -> list[str]:
    """Homes of all members of groups whose home is to be on the filesystem; what could not be made."""
    failed = []
    for one in settings["folders"]:
        for name in one["groups"]:
            try:
                members = grp.getgrnam(name).gr_mem
            except KeyError:
                failed.append(f"there is no group {name}, or its directory does not answer")
                continue
            for user in sorted(set(members)):
                if lives_in(one["path"], user) and not os.path.lexists(os.path.join(one["folder"], user)):
                    failed += make_known(one, user)
    return list(dict.fromkeys(failed))


def lives_in(path: str, user: str) -> bool:
    """Whether the node knows a user, whose home is below a path."""
    try:
        return pwd.getpwnam(user).pw_dir.rstrip("/") == f"{path}/{user}"
    except KeyError:
        return False


def main(arguments: list[str]) -> int:
    """Runs the command that the docstring describes."""
    with open(SETTINGS, encoding="utf-8") as text:
        settings = json.load(text)
    os.umask(0o077)
    if arguments == ["wrong"]:
        print("\n".join(wrong(settings)) or "as declared")
        return 0
    if arguments == ["members"]:
        failed = make_members(settings)
    elif arguments == ["make"]:
        failed = make_declared(settings)
    elif arguments[:1] == ["make"] and len(arguments) == 2:
        failed = make_known(settings["folders"][0], arguments[1])
    else:
        print("usage: homes.py wrong | make [USER] | members", file=sys.stderr)
        return 64
    for line in failed:
        print(line, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
