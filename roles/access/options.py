"""Options of the access role."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import Field, field_validator, model_validator

from rackwright.model.authorized_keys import public_key, refuse_private_key
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.logins import PRIVILEGED_GROUPS, DeclaresLogins
from rackwright.model.options import Frozen, RoleOptions
from rackwright.model.storage import home_of
from rackwright.model.strings import NodePath, not_climbing
from rackwright.roles.access.extra import AccessExtra, extra_problems

if TYPE_CHECKING:  # the model imports rackwright.model.options, so a run-time import would be a circle
    from rackwright.model.cluster import Cluster, Node
    from rackwright.model.interfaces import UserAccount

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,30}")
_SHELL = re.compile(r"/[A-Za-z0-9/_.-]+")
KEYS = "/etc/ssh/authorized_keys.d"
SSHD_FOLDER = "/etc/ssh/sshd_config.d"
SSHD_CONF = f"{SSHD_FOLDER}/00-rackwright.conf"
SUDOERS = "/etc/sudoers.d/90-rackwright"
_KEY_KINDS = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


def _user_name(name: str, kind: str = "user") -> str:
    if not _USER.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a {kind} name: it starts with a lower-case letter or underscore and continues "
            "with lower-case letters, digits, '_' or '-', 31 characters at most."
        )
    return name


def _public_key(line: str) -> str:
    """An authorized_keys line without options."""
    refuse_private_key(line)
    kind = line.split(maxsplit=1)[0] if line.strip() else ""
    if kind not in _KEY_KINDS:
        raise ValueError(
            f"An authorized key starts with its type (one of {', '.join(_KEY_KINDS)}), not with {kind[:40]!r}."
        )
    public_key(line)
    return line.strip()


class AdminGroup(Frozen):
    """A group with the same number on every node, for files that nodes share."""

    name: str = Field(description="Group name.")
    gid: int = Field(ge=1000, le=2_147_483_647, description="The same on every node.")

    @field_validator("name")
    @classmethod
    def _is_group_name(cls, name: str) -> str:
        return _user_name(name, "group")


class AdminUser(Frozen):
    """A person (or a service) that may log in to the nodes with a key."""

    name: str = Field(description="Login name.")
    uid: int = Field(
        ge=1000, le=2_147_483_647, description="The same on every node: munge and shared files rely on it."
    )
    groups: tuple[str, ...] = Field(
        default=(),
        description="Further groups. One that does not exist and is not under `groups` of this role is "
        "created with a system gid that the node chooses.",
    )
    authorized_keys: tuple[str, ...] = Field(
        default=(), description="Public keys, one line each, written to a file only root can change."
    )
    sudo: bool = Field(default=False, description="May become root with sudo, without a password.")
    shell: str = Field(default="/bin/bash", description="Login shell, an absolute path.")
    home: NodePath | None = Field(
        default=None,
        description="Home directory. None: below the declared filesystem of purpose `home`, else /home/NAME; of `ssh.user` "
        "/home/NAME in any case. usermod refuses to change the home of a user who is logged in.",
    )

    @field_validator("name")
    @classmethod
    def _is_user_name(cls, name: str) -> str:
        if name == "root":
            raise ValueError("root is not an admin user: it cannot log in; declare a user with `sudo: true`.")
        return _user_name(name)

    @field_validator("groups")
    @classmethod
    def _are_group_names(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_user_name(group, "group") for group in groups)

    @field_validator("authorized_keys")
    @classmethod
    def _are_public_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_public_key(key) for key in keys)

    @field_validator("shell")
    @classmethod
    def _is_path(cls, shell: str) -> str:
        if not _SHELL.fullmatch(shell):
            raise ValueError(f"{shell!r} is not the absolute path of a shell.")
        return not_climbing(shell)


class AccessOptions(RoleOptions, DeclaresUsers, DeclaresLogins):
    """Who may log in to the nodes, and how nodes log in to each other."""

    users: tuple[AdminUser, ...] = Field(
        default=(), description="Admin users, the same on every node of the role."
    )
    groups: tuple[AdminGroup, ...] = Field(
        default=(), description="Groups whose numbers are the same on every node."
    )
    removed_users: tuple[str, ...] = Field(
        default=(),
        description="Users whose keys and sudo rights are removed and whose account is locked; their "
        "home directories stay.",
    )
    node_to_node: bool = Field(
        default=True,
        description="Ordinary users log in from node to node without prompts, by host-based "
        "authentication between the nodes of the cluster file. Chosen over a key per user because it "
        "works for every user from the first login (accounts from a directory too), needs no shared home "
        "and leaves no private keys in homes. The price: root on a worker can log in to the other workers as "
        "any ordinary user, as it can with munge and Slurm. It does not become root that way: root, `ssh.user`, users "
        "with `sudo: true` and members of `privileged_groups` are refused everywhere, heads and storage nodes "
        "accept heads only, and login nodes accept heads and login nodes only.",
    )
    privileged_groups: tuple[str, ...] = Field(
        default=PRIVILEGED_GROUPS,
        min_length=1,
        description="Groups whose members can become root: sudo's groups of Debian, Ubuntu and EL, and groups "
        "that own a container daemon's socket or the disks. Members log in with keys, never host-based.",
    )
    max_startups: str = Field(
        default="1000:30:2000",
        description="sshd MaxStartups. sshd's own 10:30:100 drops connections when mpirun, clush or a "
        "provisioning run opens many at once; TiDB's deployment FAQ raises it to 1000 for the same reason.",
    )
    max_sessions: int = Field(
        64, ge=1, le=10000, description="sshd MaxSessions: channels per connection (sshd's own: 10)."
    )

    extra: AccessExtra = Field(default=AccessExtra(), description="Extra lines of sshd's file.")

    @field_validator("max_startups")
    @classmethod
    def _is_start_rate_full(cls, value: str) -> str:
        match = re.fullmatch(r"(\d{1,6}):(\d{1,3}):(\d{1,6})", value)
        if match is None:
            raise ValueError(
                f"max_startups {value!r} is not of the form start:rate:full, e.g. '1000:30:2000'."
            )
        start, rate, full = (int(part) for part in match.groups())
        if not (1 <= start <= full and 1 <= rate <= 100):
            raise ValueError(
                f"max_startups {value!r} needs 1 <= start <= full and a rate of 1 to 100 percent."
            )
        return value

    @field_validator("privileged_groups")
    @classmethod
    def _are_groups(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_user_name(name, "group") for name in names)

    @field_validator("removed_users")
    @classmethod
    def _are_user_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if "root" in names:
            raise ValueError("root cannot be a removed user.")
        return tuple(_user_name(name) for name in names)

    @model_validator(mode="after")
    def _names_and_numbers_are_distinct(self) -> AccessOptions:
        names = [user.name for user in self.users]
        for user in self.users:
            if names.count(user.name) > 1:
                raise ValueError(f"User {user.name} is listed more than once.")
            if user.name in self.removed_users:
                raise ValueError(f"User {user.name} is both in users and in removed_users.")
            same = [other.name for other in self.users if other.uid == user.uid]
            if len(same) > 1:
                raise ValueError(f"Users {same[0]} and {same[1]} have the same uid {user.uid}.")
        # a user's own group has the user's name and number
        groups = [(user.name, user.uid) for user in self.users] + [(g.name, g.gid) for g in self.groups]
        for index, (name, gid) in enumerate(groups):
            for other, other_gid in groups[:index]:
                if name == other:
                    raise ValueError(f"Group {name} is listed more than once, or is a user's own group.")
                if gid == other_gid:
                    raise ValueError(f"Groups {other} and {name} have the same gid {gid}.")
        return self

    @property
    def accounts(self) -> tuple[AdminUser, ...]:
        """The admin users, for roles that need to know who is on a node."""
        return self.users

    def home_folder(self, cluster: Cluster, node: Node, account: UserAccount) -> str:
        """Below the filesystem that holds homes on the node; ssh.user's stays, since usermod moves no home in use."""
        declared = next((user.home for user in self.users if user.name == account.name), None)
        filesystem = home_of(node) if account.name != cluster.ssh.user else None
        return declared or f"{filesystem.path if filesystem is not None else '/home'}/{account.name}"

    @property
    def login_keys(self) -> dict[str, tuple[str, ...]]:
        """Declared keys by user."""
        return {user.name: user.authorized_keys for user in self.users}

    @property
    def root_groups(self) -> dict[str, tuple[str, ...]]:
        """Declared members of each privileged group."""
        return {
            group: tuple(user.name for user in self.users if group in user.groups)
            for group in self.privileged_groups
        }

    @property
    def login_files(self) -> tuple[str, ...]:
        """What the deploy writes whole."""
        return (SUDOERS, SSHD_CONF, *(f"{KEYS}/{user.name}" for user in self.users))

    @property
    def administrators(self) -> tuple[str, ...]:
        """Who may use sudo."""
        return tuple(user.name for user in self.users if user.sudo)

    @property
    def sshd_settings(self) -> dict[str, str]:
        """What templates/access/sshd.conf.j2 makes of who gets in."""
        return {
            "permitrootlogin": "no",
            "passwordauthentication": "no",
            "kbdinteractiveauthentication": "no",
            "permitemptypasswords": "no",
            "pubkeyauthentication": "yes",
            "authorizedkeysfile": f".ssh/authorized_keys {KEYS}/%u",
        }

    def problems(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """Mistakes that would lock rackwright itself out of the nodes; nothing is applied while one remains."""
        yield from extra_problems(self.extra, type(self))
        login = cluster.ssh.user
        own = f"{login} is the ssh.user rackwright logs in with"
        if login == "root":
            yield (
                "",
                "ssh.user is root, and the access role forbids root logins.",
                "log in as an admin user that may use sudo (`ssh.user`)",
            )
        for index, name in enumerate(self.removed_users):
            if name == login:
                yield (f"removed_users[{index}]", f"{own} and cannot be a removed user.", None)
        for index, user in enumerate(self.users):
            if user.name == login and not user.sudo:
                yield (f"users[{index}].sudo", f"{own} and must be able to become root.", "set `sudo: true`")
