"""The exit status of a step as the last line of its output: POSIX sh has no pipefail, and the output may go through a filter."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from rackwright.command import CommandResult
from rackwright.workload.protocol import Output


@dataclass(frozen=True)
class ExitLine:
    """That line, `# LAUNCHER exit status N`. A step whose output ends without it did not come to its end."""

    launcher: str
    """What exits with the status, e.g. `srun`."""

    @property
    def echo(self) -> str:
        """The shell command that prints it, directly after the launcher."""
        return f'echo "# {self.launcher} exit status $?"'

    def kept_by(self, program: str) -> str:
        """An awk program that lets this line pass, whichever others it keeps."""
        return f"/^# {self.launcher} exit status / {{ print; fflush(); next }}\n{program}"

    def shell_line(self, words: str, output_filter: str | None) -> str:
        """Runs `words` without input, filters both outputs and ends with this line."""
        line = f"{{ {words}; {self.echo}; }} 2>&1 </dev/null"
        return line if output_filter is None else f"{line} | awk {shlex.quote(self.kept_by(output_filter))}"

    def status(self, text: str) -> int | None:
        """The last one of an output, or None."""
        found = self._pattern.findall(text)
        return int(found[-1]) if found else None

    def output(self, result: CommandResult) -> Output:
        """Of a shell line of this kind."""
        found = self.status(result.stdout)
        status = (result.exit_status or None) if found is None else found
        return Output(self.rest(result.stdout) + result.stderr, status, self.launcher)

    def rest(self, text: str) -> str:
        """The output without it."""
        return self._pattern.sub("", text)

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(rf"^# {re.escape(self.launcher)} exit status ([0-9]{{1,3}})$", re.MULTILINE)
