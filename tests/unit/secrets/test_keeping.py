"""Secrets are not lost silently: the store belongs to the cluster, is known to have existed, and can be backed up."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyrage import encrypt
from pyrage.x25519 import Identity, Recipient

from rackwright.errors import SecretsError
from rackwright.secrets.backup import back_up, restore
from rackwright.secrets.identity import identity_path, load_identities
from rackwright.secrets.recipients import add_recipient, own_key, remove_recipient
from rackwright.secrets.store import SecretStore

NAMES = ["munge_key", "slurmdbd_password"]


def open_store(file: Path, cluster: str = "prod") -> SecretStore:
    """The store as a new process sees it."""
    return SecretStore(file, cluster)


def used_store(file: Path) -> SecretStore:
    """A store whose secrets are on nodes."""
    store = open_store(file)
    store.ensure(NAMES)
    store.mark_applied(NAMES)
    return store


def become(identity: Identity, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user on the same machine."""
    identity_path().parent.mkdir(parents=True, exist_ok=True)
    identity_path().write_text(f"{identity}\n")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))


class TestPlace:
    def test_it_is_named_after_the_cluster(self, file):
        used_store(file)
        assert [path.name for path in file.parent.iterdir()] == ["prod.secrets.age"]

    def test_a_copy_of_the_cluster_file_in_the_folder_finds_it(self, file):
        key = used_store(file).get("munge_key")
        assert open_store(file.with_name("copy.yaml")).get("munge_key") == key
        assert open_store(file.with_name("copy.yaml")).ensure(NAMES).names == ()

    @pytest.mark.parametrize("new_file", ["lab.yaml", "copy.yaml"])
    def test_a_copy_in_another_folder_is_refused(self, file, tmp_path, new_file):
        path = used_store(file).path
        (tmp_path / "elsewhere").mkdir()
        elsewhere = open_store(tmp_path / "elsewhere" / new_file)
        for use in (
            lambda: elsewhere.get("munge_key"),
            lambda: elsewhere.missing(NAMES),
            lambda: elsewhere.ensure(NAMES),
            lambda: elsewhere.put("x_password", "x"),
        ):
            with pytest.raises(SecretsError, match="The secrets of cluster prod exist, but not in") as caught:
                use()
            assert str(path) in caught.value.message
            assert "--new-secrets" in (caught.value.hint or "")
        assert list((tmp_path / "elsewhere").iterdir()) == []

    def test_a_store_of_another_cluster_is_refused(self, file):
        path = used_store(file).path
        path.rename(path.with_name("test.secrets.age"))
        with pytest.raises(SecretsError, match="holds the secrets of cluster prod, not of test"):
            open_store(file, "test").get("munge_key")

    def test_a_renamed_cluster_does_not_take_the_store_named_after_its_file(self, file):
        store = open_store(file, "lab")
        store.ensure(NAMES)
        with pytest.raises(SecretsError, match="holds the secrets of cluster lab, not of prod"):
            open_store(file, "prod").ensure(NAMES)


class TestMigration:
    @pytest.fixture
    def old(self, file: Path) -> Path:
        """A store of version 1, named after the cluster file."""
        mine = load_identities()[0].to_public()
        content = {"version": 1, "recipients": [str(mine)], "secrets": {"munge_key": "b2xk"}}
        path = file.with_name("lab.secrets.age")
        path.write_bytes(encrypt(json.dumps(content).encode(), [Recipient.from_str(str(mine))]))
        return path

    def test_it_is_read_where_it_is(self, file, old):
        assert open_store(file).get("munge_key").reveal() == "b2xk"
        assert open_store(file).path == old

    def test_the_next_write_gives_it_its_new_name(self, file, old):
        open_store(file).ensure(NAMES)
        assert [path.name for path in file.parent.iterdir()] == ["prod.secrets.age"]
        store = open_store(file)
        assert store.get("munge_key").reveal() == "b2xk"
        assert store.content().id
        assert store.new_names() == ("slurmdbd_password",), "the old key is on nodes"

    def test_its_loss_is_noticed_too(self, file, old):
        open_store(file).get("munge_key")
        old.unlink()
        with pytest.raises(SecretsError, match="they were last in"):
            open_store(file).ensure(NAMES)

    def test_recipients_named_after_the_file_stay_recipients(self, file, old):
        mate = str(Identity.generate().to_public())
        file.with_name("lab.secrets.recipients").write_text(f"{mate}\n")
        open_store(file).ensure(NAMES)
        assert mate in open_store(file).content().recipients


class TestLoss:
    def test_a_store_that_was_never_used_is_made_again(self, file):
        store = open_store(file)
        store.ensure(NAMES)
        store.path.unlink()
        assert open_store(file).ensure(NAMES).created

    @pytest.mark.parametrize("used", [True, False])
    def test_a_used_store_is_not(self, file, used):
        store = used_store(file) if used else open_store(file)
        if not used:  # a value that was put cannot be generated again
            store.ensure(NAMES)
            store.put("upstream_password", "from outside")
        store.path.unlink()
        with pytest.raises(SecretsError, match="The secrets of cluster prod exist, but not in"):
            open_store(file).ensure(NAMES)
        assert not store.path.exists()

    def test_new_secrets_are_made_when_asked_for(self, file):
        store = used_store(file)
        before = store.content()
        store.path.unlink()
        done = open_store(file).ensure(NAMES, new=True)
        assert (done.created, done.names) == (True, tuple(NAMES))
        after = open_store(file).content()
        assert after.id != before.id
        assert not set(after.secrets.values()) & set(before.secrets.values())
        assert open_store(file).is_unused()

    def test_new_secrets_replace_no_store_that_is_there(self, file):
        before = used_store(file).content()
        assert open_store(file).ensure(NAMES, new=True).names == ()
        assert open_store(file).content() == before

    def test_killed_between_the_record_and_the_store_nothing_is_lost(self, file, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr("rackwright.secrets.store_file.write_atomically", _killed)
            with pytest.raises(KeyboardInterrupt):
                open_store(file).ensure(NAMES)
        assert not open_store(file).path.exists()
        assert open_store(file).ensure(NAMES).created

    def test_a_store_with_other_secrets_is_refused_until_it_is_trusted(self, file, tmp_path, monkeypatch):
        old = used_store(file)
        shutil.copy(old.path, tmp_path / "old.age")
        mine, state = identity_path().read_text(), tmp_path / "mate-state"
        old.path.unlink()
        monkeypatch.setenv(
            "XDG_STATE_HOME", str(state)
        )  # a colleague makes them anew, with the same identity
        used_store(file)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        assert identity_path().read_text() == mine
        with pytest.raises(SecretsError, match="has different secrets of cluster prod than") as caught:
            open_store(file).get("munge_key")
        assert "rackwright secrets trust FILE" in (caught.value.hint or "")
        open_store(file).trust()
        assert open_store(file).get("munge_key").reveal()

    @pytest.mark.parametrize("damage", ["", "{", "\0" * 200])
    def test_a_damaged_record_is_written_again_while_the_store_is_in_place(self, file, tmp_path, damage):
        record = tmp_path / "state" / "rackwright" / "prod" / "secrets.json"
        used_store(file)
        before, value = record.read_text(), open_store(file).get("munge_key").reveal()
        record.write_text(damage)
        assert open_store(file).get("munge_key").reveal() == value
        assert record.read_text() == before

    def test_a_damaged_record_without_the_store_is_an_error(self, file, tmp_path):
        used_store(file)
        (tmp_path / "state" / "rackwright" / "prod" / "secrets.json").write_text("{")
        open_store(file).path.unlink()
        with pytest.raises(
            SecretsError, match=r"secrets\.json, which records where the secrets .* does not exist"
        ):
            open_store(file).get("munge_key")

    def test_a_secret_that_is_missing_is_not_made_up(self, file):
        used_store(file)
        with pytest.raises(SecretsError, match="has no secret upstream_password") as caught:
            open_store(file).get("upstream_password")
        assert "rackwright secrets put upstream_password FILE" in (caught.value.hint or "")

    def test_a_plan_makes_values_up_and_stores_nothing(self, file, tmp_path):
        store = open_store(file)
        assert store.missing(NAMES) == tuple(NAMES)
        assert store.get_or_imagine("munge_key") == store.get_or_imagine("munge_key")
        assert list(file.parent.iterdir()) == []
        assert not (tmp_path / "state").exists()
        known = used_store(file).get("munge_key")
        assert open_store(file).get_or_imagine("munge_key") == known
        assert open_store(file).imagine("munge_key") != known

    def test_what_was_made_for_a_declined_plan_is_removed(self, file):
        store = open_store(file)
        store.ensure(NAMES)
        store.discard()
        assert list(file.parent.iterdir()) == []
        used = used_store(file)
        used.discard()
        assert used.path.exists()

    @pytest.mark.parametrize("damaged", [False, True])
    def test_lost_secrets_stay_lost_when_new_ones_were_declined(self, file, tmp_path, damaged):
        used_store(file).path.unlink()
        if damaged:
            (tmp_path / "state" / "rackwright" / "prod" / "secrets.json").write_text("{")
        for _ in range(2):
            store = open_store(file)
            assert store.ensure(NAMES, new=True).created
            store.discard()
            assert list(file.parent.iterdir()) == []
            with pytest.raises(SecretsError, match="The secrets of cluster prod exist, but not in"):
                open_store(file).ensure(NAMES)

    def test_lost_secrets_stay_lost_when_the_run_with_new_ones_was_killed(self, file, monkeypatch):
        used_store(file).path.unlink()
        with monkeypatch.context() as patch:
            patch.setattr("rackwright.secrets.store_file.write_atomically", _killed)
            with pytest.raises(KeyboardInterrupt):
                open_store(file).ensure(NAMES, new=True)
        with pytest.raises(SecretsError, match="The secrets of cluster prod exist, but not in"):
            open_store(file).ensure(NAMES)

    def test_new_secrets_that_were_agreed_to_replace_the_lost_ones_for_good(self, file, tmp_path):
        old = used_store(file)
        back_up(old, tmp_path / "old.age")
        old.path.unlink()
        store = open_store(file)
        store.ensure(NAMES, new=True)
        store.mark_applied(NAMES)
        store.discard()
        assert open_store(file).ensure(NAMES).names == ()
        store.path.unlink()
        with pytest.raises(SecretsError, match="has different secrets of cluster prod than"):
            restore(open_store(file), tmp_path / "old.age")

    def test_the_lost_store_can_be_restored_in_place_of_unused_new_secrets(self, file, tmp_path):
        old = used_store(file)
        before = old.content()
        back_up(old, tmp_path / "old.age")
        old.path.unlink()
        open_store(file).ensure(NAMES, new=True)
        old.path.unlink()
        restore(open_store(file), tmp_path / "old.age")
        assert not open_store(file).is_unused()
        open_store(file).discard()
        assert open_store(file).content() == before


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


class TestBackup:
    def test_it_is_private_encrypted_and_restored(self, file, tmp_path):
        store, backup = used_store(file), tmp_path / "copy.age"
        before = store.content()
        assert back_up(store, backup) == 2
        assert backup.stat().st_mode & 0o777 == 0o600
        assert before.secrets["slurmdbd_password"].encode() not in backup.read_bytes()
        store.path.unlink()
        assert restore(open_store(file), backup) == 2
        assert open_store(file).content() == before
        assert store.path.stat().st_mode & 0o777 == 0o600

    def test_neither_overwrites_a_file(self, file, tmp_path):
        store, backup = used_store(file), tmp_path / "copy.age"
        back_up(store, backup)
        with pytest.raises(SecretsError, match="already exists; backups are never overwritten"):
            back_up(store, backup)
        with pytest.raises(SecretsError, match="exists; a backup does not replace it"):
            restore(store, backup)

    def test_a_copy_that_went_wrong_is_noticed(self, file, tmp_path, monkeypatch):
        store = used_store(file)

        def cut(path: Path, content: bytes, **_: object) -> None:
            path.write_bytes(content[:-20])

        monkeypatch.setattr("rackwright.secrets.backup.write_atomically", cut)
        with pytest.raises(SecretsError, match="damaged"):
            back_up(store, tmp_path / "copy.age")

    @pytest.mark.parametrize("broken", [b"", b"age-encryption.org/v1\n", b"nothing"])
    def test_what_is_no_backup_is_not_restored(self, file, tmp_path, broken):
        store, bad = used_store(file), tmp_path / "bad.age"
        bad.write_bytes(broken)
        store.path.unlink()
        with pytest.raises(SecretsError):
            restore(open_store(file), bad)
        assert not store.path.exists()

    def test_of_another_cluster_it_is_not_restored(self, file, tmp_path):
        other = open_store(file, "test")
        other.ensure(NAMES)
        back_up(other, tmp_path / "test.age")
        used_store(file).path.unlink()
        with pytest.raises(SecretsError, match="holds the secrets of cluster test, not of prod"):
            restore(open_store(file), tmp_path / "test.age")

    def test_a_backup_needs_a_store(self, file, tmp_path):
        with pytest.raises(SecretsError, match="Cluster prod has no secrets yet"):
            back_up(open_store(file), tmp_path / "copy.age")
        assert not (tmp_path / "copy.age").exists()


class TestRecipients:
    def test_one_who_is_added_can_read(self, file, tmp_path, monkeypatch):
        store, mate = used_store(file), Identity.generate()
        key = store.get("munge_key")
        add_recipient(store, str(mate.to_public()))
        assert store.file.recipients_path.read_text() == f"{mate.to_public()}\n"
        become(mate, tmp_path / "mate", monkeypatch)
        assert open_store(file).get("munge_key") == key

    def test_one_who_is_removed_cannot_and_rotation_is_due(self, file, tmp_path, monkeypatch):
        store, mate = used_store(file), Identity.generate()
        mates = str(mate.to_public())
        store.file.recipients_path.write_text(f"# team\n{mates}  # mate\n")
        store.ensure(NAMES)
        assert remove_recipient(store, mates) == tuple(NAMES)
        assert store.file.recipients_path.read_text() == "# team\n"
        assert store.content().seen_by_removed == dict.fromkeys(NAMES, frozenset({mates}))
        store.ensure([*NAMES, "new_password"])
        assert "new_password" not in store.content().seen_by_removed
        store.put("slurmdbd_password", "another")
        assert set(store.content().seen_by_removed) == {"munge_key"}
        become(mate, tmp_path / "mate", monkeypatch)
        with pytest.raises(SecretsError, match="is not encrypted to your identity"):
            open_store(file).get("munge_key")

    def test_it_survives_the_next_write(self, file):
        store, mates = used_store(file), str(Identity.generate().to_public())
        add_recipient(store, mates)
        remove_recipient(store, mates)
        assert not store.file.recipients_path.exists()
        store.put("x_password", "x")
        assert store.content().recipients == {own_key()}

    def test_mistakes(self, file):
        store = used_store(file)
        with pytest.raises(SecretsError, match="`age1nonsense` is not a valid age public key"):
            add_recipient(store, "age1nonsense")
        with pytest.raises(SecretsError, match="is not a recipient of"):
            remove_recipient(store, str(Identity.generate().to_public()))
        with pytest.raises(SecretsError, match="your own key"):
            remove_recipient(store, own_key())
        secret = str(Identity.generate())
        with pytest.raises(SecretsError, match="is not a valid age public key") as caught:
            add_recipient(store, secret)
        assert secret not in caught.value.message
