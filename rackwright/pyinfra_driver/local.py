"""pyinfra's `@local` as the driver needs it: the machine that rackwright runs on."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from pyinfra.api.arguments import ConnectorArguments
from pyinfra.api.command import StringCommand
from pyinfra.connectors.local import LocalConnector
from pyinfra.connectors.util import make_unix_command_for_host

from rackwright.command import CommandResult
from rackwright.pyinfra_driver.connector_state import ConnectorState, as_bytes
from rackwright.ssh import TIMED_OUT


@dataclass(frozen=True)
class _Here:
    """This machine needs no connection."""

    connector: ConnectorState

    def run(self, command: str, stdin: str, timeout: float) -> CommandResult:
        """Run one command."""
        arguments = ConnectorArguments(_stdin=stdin, _timeout=max(1, int(timeout)))
        return self.connector.execute(StringCommand(command), arguments)

    def close(self) -> None:
        """Nothing to close."""


class ThisMachineConnector(ConnectorState, LocalConnector):
    """Executes here. Unlike pyinfra's own it never asks for a password: sudo has to do without."""

    def another(self, timeout: float) -> _Here:
        """No network lies between: commands run here."""
        return _Here(self)

    def go_on_with(self, connection: _Here) -> None:
        """There is nothing to replace."""

    def execute(self, command: StringCommand, arguments: ConnectorArguments) -> CommandResult:
        """Run one command."""
        arguments.pop("_get_pty", None)
        arguments.pop("_success_exit_codes", None)
        limit = arguments.pop("_timeout", None)
        stdin = as_bytes(arguments.pop("_stdin", None)) or b""
        line = make_unix_command_for_host(self.state, self.host, command, **arguments).get_raw_value()
        try:
            done = subprocess.run(
                ["sh", "-c", line], input=stdin, capture_output=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            return CommandResult(line, TIMED_OUT, "", f"no end within {limit} s")
        return CommandResult(
            line, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
