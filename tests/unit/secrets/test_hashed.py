"""Passwords as services keep them."""

from __future__ import annotations

import bcrypt

from rackwright.secrets.hashed import bcrypt_hash


def test_the_hash_is_the_passwords_and_the_same_each_time():
    first = bcrypt_hash("secret", salt_key="k", salt_of="prometheus", cost=4)
    assert first == bcrypt_hash.__wrapped__("secret", salt_key="k", salt_of="prometheus", cost=4)
    assert first.startswith("$2b$04$")
    assert bcrypt.checkpw(b"secret", first.encode())
    assert not bcrypt.checkpw(b"Secret", first.encode())


def test_the_salt_follows_from_its_key_and_from_what_it_is_for():
    hashes = {
        bcrypt_hash("secret", salt_key=key, salt_of=of, cost=4) for key in ("k", "l") for of in ("a", "b")
    }
    assert len(hashes) == 4


def test_what_bcrypt_cannot_take_is_left_out():
    assert bcrypt.checkpw(b"x" * 72, bcrypt_hash("x" * 80, salt_key="k", salt_of="a", cost=4).encode())
