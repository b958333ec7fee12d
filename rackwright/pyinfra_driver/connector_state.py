"""What the driver asks of a connector beyond pyinfra's own interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyinfra.api.command import StringCommand

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.factcache.answers import Answers, Asked
from rackwright.factcache.fetch import Opened
from rackwright.facts.question import Question

_APART = ("_sudo_user", "_su_user", "_doas", "_chdir", "_env", "_stdin", "_use_sudo_login")


class Watched:
    """Mixed into a connector. The driver reads these and sets `answers`."""

    last: CommandResult | None = None
    """The last command that failed, for the report on this node."""
    lost: str | None = None
    """Why the connection broke, once it has."""
    answers: Answers | None = None
    executions: int = 0
    """Commands run on the node."""

    def adopt(self, opened: Opened) -> None:
        """Go on with a connection and answers that are there already."""
        self.answers = opened.answers

    def broke(self, error: ConnectionFailed) -> ConnectionResetError:
        """Note that the node is lost; what pyinfra is to be told, which knows an OSError as one host's."""
        self.lost = error.message
        return ConnectionResetError(error.message)

    def foreseen(self, command: StringCommand | str, arguments: Mapping[str, Any]) -> CommandResult | None:
        """The answer to a fact's command without a round trip of its own, if there is one.

        Commands with another user, folder or environment than the batch has are never part of it.
        """
        if self.answers is None or any(arguments.get(name) for name in _APART):
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
        """A command was executed by itself; the answer of a question is kept."""
        self.executions += 1
        if self.answers is None or any(arguments.get(name) for name in _APART):
            return
        question = asked_of(command)
        if self.answers.is_question(question):
            self.answers.learn(question, result)


def asked_of(command: StringCommand | str) -> Asked:
    """The question behind a fact's command, as JSON data."""
    if isinstance(command, Question):
        return {**command.asked, "command": command.get_raw_value()}
    text = command.get_raw_value() if isinstance(command, StringCommand) else command
    return {"kind": "shell", "command": text}
