"""The run of the tests of engine, for the tests of operations as well."""

from tests.unit.pyinfra_driver.conftest import one, run

__all__ = ["one", "run"]
