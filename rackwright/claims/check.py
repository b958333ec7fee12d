"""Checks: the claims of a role about a node, and the five possible results.

A check is a function of a `CheckContext`. It returns evidence (a short string) if the claim holds,
and otherwise raises: `Failed` (or a plain AssertionError) if the claim is false, `Warned` if it holds
with a reservation, `Undetermined` if that could not be determined. Any other exception, a missing
tool and a timeout count as UNKNOWN: an unknown state is never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Protocol, TypeVar

from rackwright.boundary import Refused, last_line, printable, read_json
from rackwright.model.cluster import Cluster, Node
from rackwright.model.options import RoleOptions
from rackwright.model.platforms import Capability
from rackwright.status import Status

if TYPE_CHECKING:
    from pyinfra.api.command import StringCommand


_SHOWN = 160
"""Characters of a command in a message."""


class Failed(AssertionError):  # noqa: N818 - these read as verdicts
    """The claim is false."""


class Warned(Exception):  # noqa: N818
    """The claim holds with a reservation."""


class Undetermined(Exception):  # noqa: N818
    """Whether the claim holds could not be determined."""


class NotInScope(Exception):  # noqa: N818
    """The declared platform cannot have this; carries the reason."""


class TestinfraHost(Protocol):
    """The part of testinfra's Host the checks use; the real one satisfies it."""

    def run(self, command: str, *args: str) -> Any: ...  # noqa: ANN401
    def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401


_NO_SUCH_COMMAND = (126, 127)
_SIDE_BY_SIDE = 16
OptionsT_co = TypeVar("OptionsT_co", bound=RoleOptions, covariant=True)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_State_co = TypeVar("_State_co", covariant=True)


class Fact(Protocol[_State_co]):
    """The part of a pyinfra fact the checks use: rackwright.facts has them."""

    def command(self, *args: Any, **arguments: Any) -> StringCommand | str: ...  # noqa: ANN401
    def process(self, output: list[str]) -> _State_co: ...


@dataclass(frozen=True)
class CheckContext(Generic[OptionsT_co]):
    """Everything a check function may use; `options` are the same as the deploy's.

    `host` is the testinfra host of `node` (root rights), `on(name)` that of any other node, for
    checks that cross nodes.
    """

    cluster: Cluster
    node: Node
    options: OptionsT_co
    host: TestinfraHost
    on: Callable[[str], TestinfraHost] = field(repr=False)

    def output(self, command: str, *args: str, host: TestinfraHost | None = None) -> str:
        """Run a command (testinfra quoting: `%s`) and return its stdout.

        Raises Undetermined when the tool is missing or the command fails: use `host.run` where a
        failing command is the answer itself.
        """
        result = (host or self.host).run(command, *args)
        if result.rc in _NO_SUCH_COMMAND:
            printed = last_line("", result.stderr) if result.stderr.strip() else "not found"
            raise Undetermined(f"{self._of(host)}cannot run `{command.split()[0]}`: {printed}")
        if result.rc != 0:
            printed = last_line(result.stdout, result.stderr)
            raise Undetermined(f"{self._of(host)}`{_shown(command, args)}` exited {result.rc}: {printed}")
        return str(result.stdout)

    def fact(
        self,
        fact: type[Fact[_State_co]],
        *args: Any,  # noqa: ANN401
        host: TestinfraHost | None = None,
        may_be_empty: bool = False,
        **arguments: Any,  # noqa: ANN401
    ) -> _State_co:
        """The value of a fact of rackwright.facts, read as the deploy reads it: same command, same parser.

        Raises Undetermined if its command fails or prints something unreadable, and also if it prints nothing,
        because a tool may be missing. `may_be_empty`: empty output is a valid answer.
        """
        asked = fact()
        command = asked.command(*args, **arguments)
        text = command if isinstance(command, str) else command.get_raw_value()
        lines = self.output("sh -c %s", text, host=host).splitlines()
        if not lines and not may_be_empty:
            raise Undetermined(
                f"{self._of(host)}{fact.__name__} of {', '.join(map(str, args))}: the node printed nothing"
            )
        try:
            return asked.process(lines)
        except (
            Exception
        ) as error:  # also an AssertionError: a parser that fails proves nothing about the node
            why = printable(f"{type(error).__name__}: {error}", 200)
            raise Undetermined(f"{self._of(host)}{fact.__name__} cannot be read: {why}") from error

    def json(self, command: str, *args: str, host: TestinfraHost | None = None) -> Any:  # noqa: ANN401
        """Run a command that prints JSON; raises Undetermined for other output."""
        text = self.output(command, *args, host=host)
        try:
            return read_json(text)
        except Refused as error:
            raise Undetermined(
                f"{self._of(host)}`{command}` did not print JSON that can be used: {error}"
            ) from error

    def _of(self, host: TestinfraHost | None) -> str:
        """The prefix of a message about another node than the check's."""
        name = getattr(getattr(host, "backend", None), "hostname", None) if host is not None else None
        return f"{name}: " if isinstance(name, str) and name != self.node.name else ""


def _shown(command: str, args: tuple[str, ...]) -> str:
    """The command as it ran; a script is shown as written here."""
    whole = command % tuple(map(quote, args)) if args else command
    return whole if len(whole) <= _SHOWN and whole.isprintable() else command


def each(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """Call `function` for every item in parallel, for checks that query every node of a cluster.

    Returns results in the items' order. After all have ended, raises the first exception in that order.
    """
    todo = [(copy_context(), item) for item in items]  # the check's time limit goes with it
    with ThreadPoolExecutor(max(1, min(_SIDE_BY_SIDE, len(todo)))) as pool:
        begun = [pool.submit(context.run, function, item) for context, item in todo]
    return [one.result() for one in begun]


def fail(message: str) -> NoReturn:
    """Report that the claim is false."""
    raise Failed(message)


CheckFunction = Callable[[Any], str | None]
"""Takes a CheckContext; returns the evidence of a PASS."""


@dataclass(frozen=True)
class Check:
    """One claim of a role. `name` is the claim itself: "slurmd is running".

    scope "node": runs on every node of the role; "cluster": runs once, on the primary head, and
    may look at other nodes. `needs`: capabilities without which it is OUT OF SCOPE.
    `settle_seconds`: how long a claim may take to come true after an apply; it is asked again
    until it holds or the time is over.
    """

    name: str
    function: CheckFunction
    scope: Literal["node", "cluster"] = "node"
    needs: frozenset[Capability] = frozenset()
    settle_seconds: int = 0
    timeout_seconds: int = 60
    applies: Callable[[Node, Any], bool] | None = None
    """(node, options) -> whether the claim applies to this node."""
    in_service: bool = False
    """It runs a job on the node, which a workload manager refuses while the node is drained."""
    live: bool = False
    """Its commands act, wait or use what is new each time: they are never fetched ahead."""


@dataclass(frozen=True)
class CheckResult:
    """The result of one check on one node ("cluster" checks name the primary head)."""

    role: str
    check: str
    node: str
    status: Status
    evidence: str
    seconds: float = 0.0


def worst(results: Mapping[Status, int]) -> Status:
    """The status that decides: FAIL before UNKNOWN before WARN before PASS."""
    for status in (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS):
        if results.get(status):
            return status
    return Status.UNKNOWN  # without a check nothing is known
