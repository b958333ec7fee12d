"""The run of the tests of engine, for the tests of operations as well."""

from tests.unit.engine.conftest import one, run

__all__ = ["one", "run"]
