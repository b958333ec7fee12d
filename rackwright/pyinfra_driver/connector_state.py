"""State of a connector beyond pyinfra's own interface: prefetched answers, and what broke."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyinfra.api.arguments import ConnectorArguments
from pyinfra.api.command import StringCommand
from pyinfra.connectors.util import CommandOutput, OutputLine
from typing_extensions import Unpack

from rackwright.boundary import Refused
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.factcache.answers import Answers, Asked
from rackwright.factcache.fetch import Opened
from rackwright.facts.question import Question
from rackwright.ssh import TIMED_OUT

LINES_MAX = 200_000
"""Line limit of one answer: each line becomes a pyinfra object. A listing of all our modules has some hundred lines."""
_FAILED_LINES = 100
_FAILED_CHARACTERS = 1000
"""Of a failed command pyinfra logs every line."""
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What str.splitlines splits at."""
APART = ("_sudo_user", "_su_user", "_doas", "_chdir", "_env", "_stdin", "_use_sudo_login")
"""Global arguments that make a command something else than the same command as root."""


class ConnectorState:
    """Mixed into a connector, which implements `execute`. The driver reads these fields and sets `answers`."""

    last: CommandResult | None = None
    """The last command that failed, for the report on this node."""
    lost: str | None = None
    """Why the connection broke, once it has."""
    failure: str | None = None
    """Why an operation failed, where that is known better than by its last command."""
    answers: Answers | None = None
    executions: int = 0
    """Commands run on the node."""

    def execute(self, command: StringCommand, arguments: ConnectorArguments) -> CommandResult:
        """Run one command on the node; an OSError when the connection is lost."""
        raise NotImplementedError

    def run_shell_command(
        self,
        command: StringCommand,
        print_output: bool = False,
        print_input: bool = False,
        **arguments: Unpack[ConnectorArguments],
    ) -> tuple[bool, CommandOutput]:
        """Run one command, or take the answer that is there already; (succeeded, output).

        Refused where the answer has more lines than pyinfra could hold for all nodes.
        """
        given: dict[str, Any] = dict(arguments)
        answer = self.prefetched_answer(command, given)
        if answer is None:
            answer = self.execute(command, arguments)
            self.ran(command, given, answer)
        good = given.get("_success_exit_codes") or [0]
        if answer.exit_status not in good or answer.exit_status == TIMED_OUT:
            self.last = CommandResult(
                str(command), answer.exit_status, _end(answer.stdout), _end(answer.stderr)
            )
            return False, _output(self.last)
        if sum(map((answer.stdout + answer.stderr).count, _LINE_ENDS)) > LINES_MAX:
            raise Refused(f"its answer is invalid: it has more than {LINES_MAX} lines")
        return True, _output(answer)

    def adopt(self, opened: Opened) -> None:
        """Take over a connection and the answers prefetched over it."""
        self.answers = opened.answers

    def broke(self, error: ConnectionFailed) -> ConnectionResetError:
        """Note that the node is lost; the exception to raise: pyinfra takes an OSError as one host's failure."""
        self.lost = error.message
        return ConnectionResetError(error.message)

    def prefetched_answer(
        self, command: StringCommand | str, arguments: Mapping[str, Any]
    ) -> CommandResult | None:
        """The answer to a fact's command if it was prefetched.

        Commands with another user, folder or environment than the batch has are never part of it.
        """
        if self.answers is None or any(arguments.get(name) for name in APART):
            return None
        question = asked_of(command)
        if self.answers.is_question(question):
            try:
                return self.answers.get(question)
            except ConnectionFailed as error:
                raise self.broke(error) from error
        self.answers.forget()
        return None

    def ran(self, command: StringCommand | str, arguments: Mapping[str, Any], result: CommandResult) -> None:
        """Note that a command was executed by itself; keep its answer if it is a question."""
        self.executions += 1
        if self.answers is None or any(arguments.get(name) for name in APART):
            return
        question = asked_of(command)
        if self.answers.is_question(question):
            self.answers.learn(question, result)


def _output(answer: CommandResult) -> CommandOutput:
    return CommandOutput(
        [OutputLine("stdout", text) for text in answer.stdout.splitlines()]
        + [OutputLine("stderr", text) for text in answer.stderr.splitlines()]
    )


def _end(text: str) -> str:
    """The last lines of what a failed command printed, each cut off where it is long."""
    lines = text[-_FAILED_LINES * _FAILED_CHARACTERS :].splitlines()[-_FAILED_LINES:]
    return "\n".join(line[:_FAILED_CHARACTERS] for line in lines)


def asked_of(command: StringCommand | str) -> Asked:
    """The question behind a fact's command, as JSON data."""
    if isinstance(command, Question):
        return {**command.asked, "command": command.get_raw_value()}
    return {"kind": "shell", "command": text_of(command)}


def text_of(command: StringCommand | str) -> str:
    """The shell command itself; facts may give pyinfra a plain string."""
    return command.get_raw_value() if isinstance(command, StringCommand) else command


def as_bytes(stdin: Any) -> bytes | None:  # noqa: ANN401 - pyinfra takes text, lines or a file
    """What a command reads from stdin, as bytes."""
    if stdin is None or stdin is False:
        return None
    if hasattr(stdin, "read"):
        stdin = stdin.read()
    if isinstance(stdin, bytes):
        return stdin
    lines = [stdin] if isinstance(stdin, str) else list(stdin)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines).encode()
