"""Secrets: generated once, kept encrypted, never shown."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import traceback
from base64 import b64decode
from datetime import datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pyrage.x25519 import Identity

from rackwright.errors import SecretsError
from rackwright.secrets.identity import identity_path
from rackwright.secrets.store import Secret, SecretStore

VALUE = "correct-horse-battery"


def open_store(file: Path) -> SecretStore:
    """The store of cluster `lab` as a new process sees it."""
    return SecretStore(file, "lab")


def made(file: Path, name: str) -> Secret:
    """A secret, generated as an apply does."""
    open_store(file).ensure([name])
    return open_store(file).get(name)


def store_file(file: Path) -> Path:
    return file.with_name("lab.secrets.age")


class TestSecret:
    secret = Secret("munge_key", VALUE)

    @pytest.mark.parametrize(
        "text",
        [
            str(secret),
            repr(secret),
            f"{secret}",
            f"{secret:>40}",
            "%s %r" % (secret, secret),  # noqa: UP031
            repr([secret]),
            repr({"k": secret}),
            repr(copy.deepcopy([secret])),
            repr(copy.copy(secret)),
        ],
    )
    def test_text_shows_a_mask(self, text):
        assert VALUE not in text
        assert "(secret munge_key)" in text

    def test_reveal_gives_the_value(self):
        assert self.secret.reveal() == VALUE

    def test_is_not_pickled(self):
        with pytest.raises(TypeError, match="is not pickled"):
            pickle.dumps(self.secret)

    def test_is_no_json(self):
        with pytest.raises(TypeError):
            json.dumps(self.secret)
        assert VALUE not in json.dumps(self.secret, default=str)

    def test_has_no_dict_that_a_debugger_would_print(self):
        assert not hasattr(self.secret, "__dict__")

    def test_equality_needs_name_and_value(self):
        assert self.secret == Secret("munge_key", VALUE)
        assert hash(self.secret) == hash(Secret("munge_key", VALUE))
        assert self.secret != Secret("munge_key", VALUE + "x")
        assert self.secret != Secret("other", VALUE)
        assert self.secret != VALUE

    def test_tracebacks_with_local_variables_are_masked(self):
        def fail(secret):
            raise RuntimeError(f"cannot use {secret}")

        try:
            fail(self.secret)
        except RuntimeError as error:
            shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert "(secret munge_key)" in shown
        assert VALUE not in shown.replace(f"'{VALUE}'", "")  # the module's own constant is no secret


class TestStore:
    def test_a_secret_is_generated_once(self, file):
        first = made(file, "slurmdbd_password")
        assert made(file, "slurmdbd_password") == first
        store = open_store(file)
        assert store.get("slurmdbd_password") == store.get("slurmdbd_password")

    @pytest.mark.parametrize(
        ("name", "length"),
        [
            ("munge_key", 1368),
            ("slurmdbd_password", 32),
            ("jwt_key", 44),
            ("slurm_jwt_key", 44),
            ("other", 43),
        ],
    )
    def test_kinds_by_name(self, file, name, length):
        assert len(made(file, name).reveal()) == length

    def test_the_key_of_a_ca_is_one_of_p_384_with_its_date(self, file):
        first, _, key = made(file, "site_ca_key").reveal().partition("\n")
        assert datetime.fromisoformat(first.removeprefix("made ")).tzinfo is not None
        assert load_pem_private_key(key.encode(), None).curve.name == "secp384r1"

    def test_munge_key_is_1024_bytes(self, file):
        assert len(b64decode(made(file, "munge_key").reveal())) == 1024

    def test_a_second_secret_keeps_the_first(self, file):
        first = made(file, "one")
        made(file, "two")
        assert open_store(file).get("one") == first

    def test_the_file_is_private_and_encrypted(self, file):
        value = made(file, "munge_key").reveal()
        assert store_file(file).stat().st_mode & 0o777 == 0o600
        content = store_file(file).read_bytes()
        assert content.startswith(b"age-encryption.org/v1")
        assert value.encode() not in content
        assert [entry.name for entry in file.parent.iterdir()] == ["lab.secrets.age"]

    def test_mask(self, file):
        store = open_store(file)
        store.ensure(["slurmdbd_password"])
        value = store.get("slurmdbd_password").reveal()
        assert store.mask(f"IDENTIFIED BY '{value}'") == "IDENTIFIED BY '(secret slurmdbd_password)'"

    @pytest.mark.parametrize("name", ["", "Munge", "../x", "a b", "1x"])
    def test_bad_names(self, file, name):
        with pytest.raises(SecretsError, match="is not a valid secret name"):
            made(file, name)

    def test_another_identity_cannot_read(self, file, config):
        made(file, "munge_key")
        identity_path().unlink()
        with pytest.raises(SecretsError, match="is not encrypted to your identity in") as caught:
            made(file, "munge_key")
        assert "rackwright secrets add-recipient age1... FILE" in caught.value.hint

    @pytest.mark.parametrize("at", [-1, 250])
    def test_a_changed_byte_is_found(self, file, at):
        made(file, "munge_key")
        content = bytearray(store_file(file).read_bytes())
        content[at] ^= 1
        store_file(file).write_bytes(content)
        with pytest.raises(SecretsError, match="Cannot decrypt"):
            made(file, "munge_key")
        assert store_file(file).read_bytes() == content, "a damaged store is never overwritten"

    def test_a_truncated_file_is_found(self, file):
        made(file, "munge_key")
        store_file(file).write_bytes(store_file(file).read_bytes()[:100])
        with pytest.raises(SecretsError, match="damaged"):
            made(file, "other")

    def test_a_failed_write_leaves_the_old_file(self, file, monkeypatch):
        made(file, "one")
        before = store_file(file).read_bytes()

        def refuse(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.replace", refuse)
        with pytest.raises(SecretsError, match=r"Cannot write .*: no space left on device"):
            made(file, "two")
        assert store_file(file).read_bytes() == before
        assert [entry.name for entry in file.parent.iterdir()] == ["lab.secrets.age"]

    def test_processes_at_once_agree(self, file, config):
        """Four processes generate the same and different secrets: nothing is lost, all agree."""
        program = (
            "import sys; from pathlib import Path; from rackwright.secrets.store import SecretStore;"
            "store = SecretStore(Path(sys.argv[1]), 'lab');"
            "store.ensure(['shared', 'own_' + sys.argv[2]]);"
            "print(store.get('shared').reveal(), store.get('own_' + sys.argv[2]).reveal())"
        )
        running = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(file), str(index)], stdout=subprocess.PIPE, text=True
            )
            for index in range(4)
        ]
        said = [process.communicate(timeout=240)[0].split() for process in running]
        assert len({shared for shared, _ in said}) == 1
        for index, (_, own) in enumerate(said):
            assert open_store(file).get(f"own_{index}").reveal() == own


class TestIdentity:
    def test_is_created_privately(self, file, config):
        made(file, "one")
        assert identity_path() == config / "rackwright" / "identity.age.txt"
        assert identity_path().stat().st_mode & 0o777 == 0o600
        assert identity_path().parent.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
    def test_readable_by_others_is_refused(self, file, mode):
        made(file, "one")
        identity_path().chmod(mode)
        with pytest.raises(SecretsError, match="Other users can read") as caught:
            made(file, "one")
        assert caught.value.hint == f"chmod 600 {identity_path()}"

    @pytest.mark.parametrize("content", ["", "# nothing\n", "AGE-SECRET-KEY-1WRONG\n"])
    def test_without_an_identity(self, file, content):
        made(file, "one")
        identity_path().write_text(content)
        with pytest.raises(SecretsError, match="contains no age identity") as caught:
            made(file, "one")
        assert "WRONG" not in str(caught.value)

    def test_that_cannot_be_read_as_text(self, file):
        made(file, "one")
        identity_path().write_bytes(b"\xff\xfe")
        with pytest.raises(SecretsError, match="is not usable: it is not text"):
            made(file, "one")

    def test_a_relative_configuration_folder_is_ignored(self, monkeypatch, tmp_path):
        monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert identity_path() == tmp_path / ".config" / "rackwright" / "identity.age.txt"


class TestTeam:
    def become(self, identity: Identity) -> None:
        identity_path().write_text(f"{identity}\n")

    def test_a_team_shares_a_store(self, file):
        mate = Identity.generate()
        file.with_name("lab.secrets.recipients").write_text(f"# the team\n{mate.to_public()}  # mate\n\n")
        value = made(file, "one").reveal()
        self.become(mate)
        assert open_store(file).get("one").reveal() == value

    def test_who_joins_later_can_read_after_the_next_apply(self, file):
        value = made(file, "one").reveal()
        mate = Identity.generate()
        file.with_name("lab.secrets.recipients").write_text(f"{mate.to_public()}\n")
        made(file, "one")
        self.become(mate)
        assert open_store(file).get("one").reveal() == value

    def test_no_one_is_locked_out_by_a_mate(self, file):
        value = made(file, "one").reveal()
        mine = identity_path().read_text()
        mate = Identity.generate()
        file.with_name("lab.secrets.recipients").write_text(f"{mate.to_public()}\n")
        made(file, "one")
        self.become(mate)
        made(file, "two")
        identity_path().write_text(mine)
        assert open_store(file).get("one").reveal() == value

    def test_a_bad_key_is_named_by_its_line(self, file):
        file.with_name("lab.secrets.recipients").write_text("# team\nage1nonsense\n")
        with pytest.raises(SecretsError, match=r"lab\.secrets\.recipients:2 is not a valid age public key"):
            made(file, "one")
