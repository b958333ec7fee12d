"""The run, for the tests of the questions and answers."""

from tests.unit.pyinfra_driver.conftest import one, run

__all__ = ["one", "run"]
