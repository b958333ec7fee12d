"""Updates the firmware of one node: image by image, following each task to its end, then reading the versions back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rackwright.bmc.target import NoAnswer
from rackwright.bmc.updates import TaskState, UpdateTask, UpdateWay
from rackwright.errors import BmcError, FirmwareError
from rackwright.firmware.asking import Asking
from rackwright.firmware.compare import Line, Verdict, judge
from rackwright.firmware.plan import UpdateStep, steps
from rackwright.firmware.reading import read
from rackwright.model.firmware import Baseline

_AGAIN = "see its web interface or `rackwright bmc log`; then run the same command again"


@dataclass
class UpdateNode:
    """One node, out of service; FirmwareError, BmcError or NotBooted where it does not get there."""

    asking: Asking
    baseline: Baseline
    boot: Callable[[], None]
    """Boots the node in good order, and waits for it."""
    url_of: Callable[[Path], str] | None = None
    """Where BMCs fetch a file from here; None: they cannot."""
    notice: Callable[[str], None] = lambda text: None
    _waiting: list[str | None] = field(default_factory=list)
    """Tasks that wait for a boot."""

    def run(self) -> tuple[str, ...]:
        """Update what differs; what is as declared now and was not."""
        touched = {line.what for step in self._steps() for line in step.lines}
        self._finish_under_way()
        if self._waiting:  # left by a run that was interrupted: its images are not sent a second time
            self._boot_and_settle()
        for image in [step.image for step in self._steps()]:
            due = next((step for step in self._steps() if step.image == image), None)
            if due is not None:
                self._apply(due)
        if self._waiting or self._steps():
            self._boot_and_settle()
        return self._read_back(touched)

    def _steps(self) -> tuple[UpdateStep, ...]:
        return steps(self.baseline, self._lines())

    def _lines(self) -> tuple[Line, ...]:
        return judge(self.baseline, self.asking.ask(partial(read, baseline=self.baseline)))

    def _finish_under_way(self) -> None:
        """Tasks of an earlier run, or of another operator, come to their end before anything is sent."""
        for task in self.asking.ask(lambda client: client.updates().under_way()):
            self.notice(f"waiting for a task in progress: {task.name}")
            self._follow(task.name, "a task in progress", must_succeed=False)

    def _apply(self, step: UpdateStep) -> None:
        self.notice(f"update: {step}")
        name = self._begin(step)
        state = self._follow(name, str(step))
        if state is TaskState.WAITING or self._is_there(step):
            return
        unclear = state is TaskState.NOT_KNOWN
        if (step.of_bmc or unclear) and not self.asking.until(
            partial(self._is_there, step), self.asking.tempo.settle
        ):
            why = "its BMC reports neither a task nor its end" if unclear else "its task succeeded"
            raise FirmwareError(f"{step}: {why}, but the version has not changed.", hint=_AGAIN)

    def _begin(self, step: UpdateStep) -> str | None:
        image = self._source(step.image)

        def begin() -> str | None:
            return self.asking.change(lambda client: client.updates().begin(image, at_reset=not step.of_bmc))

        try:
            return begin()
        except NoAnswer as error:
            raise FirmwareError(
                f"{error.message.rstrip('.')}; it may have started {step}.", hint=_AGAIN
            ) from error
        except BmcError:
            if not self._waiting:
                raise
        self._boot_and_settle()  # some BMCs take no second image while one waits for a boot
        return begin()

    def _source(self, image: str | Path) -> str | Path:
        ways = self.asking.ask(lambda client: client.updates().ways())
        if isinstance(image, str) or UpdateWay.URL not in ways:
            needed = UpdateWay.URL if isinstance(image, str) else UpdateWay.FILE
            if needed not in ways:
                raise FirmwareError(
                    f"The BMC of {self.asking.node.name} accepts no images"
                    + (" from URLs." if ways else ": its update service is missing or disabled."),
                    hint="declare the image as a `file`" if ways else "it may lack a vendor license",
                )
            return image
        if self.url_of is not None:
            return self.url_of(image)
        if UpdateWay.FILE in ways:
            return image
        raise FirmwareError(
            f"The BMC of {self.asking.node.name} must download {image.name}, but no server for it is declared.",
            hint="e.g. `boot_network: {server: 10.1.0.5, bmc_server: 10.20.0.5}`, or `url` instead of `file`",
        )

    def _follow(self, name: str | None, what: str, *, must_succeed: bool = True) -> TaskState:
        """To the end of a task, or until it waits for a boot, which is noted."""
        deadline = time.monotonic() + self.asking.tempo.task
        shown, ran = -1, False
        while True:
            task = self.asking.ask(lambda client: client.updates().task(name))
            ran = ran or task.state is TaskState.RUNNING
            if task.state is TaskState.WAITING:
                self._waiting.append(name)
                return task.state
            if task.state is TaskState.FAILED and must_succeed and (name is not None or ran):
                raise FirmwareError(f"{what}: failed: {_said(task)}.", hint=_AGAIN)
            if task.state is not TaskState.RUNNING:
                # without a task of this update, an end may be that of an earlier one
                return task.state if name is not None or ran else TaskState.NOT_KNOWN
            if time.monotonic() >= deadline:
                seconds = f"{self.asking.tempo.task:g} s"
                raise FirmwareError(f"{what}: not finished within {seconds}: {_said(task)}.", hint=_AGAIN)
            if task.percent is not None and task.percent >= shown + 10:
                shown = task.percent
                self.notice(f"{what}: {task.percent} %")
            self.asking.pause()

    def _boot_and_settle(self) -> None:
        waiting, self._waiting = self._waiting, []
        self.boot()
        deadline = time.monotonic() + self.asking.tempo.task
        for name in waiting:
            while self._follow(name, f"task {name}") is TaskState.WAITING:
                self._waiting.clear()
                if time.monotonic() >= deadline:
                    raise FirmwareError(
                        f"Task {name} is still waiting after the node has booted.", hint=_AGAIN
                    )
                self.asking.pause()
        self.asking.until(lambda: not self._steps(), self.asking.tempo.settle)

    def _is_there(self, step: UpdateStep) -> bool:
        wanted = {line.what for line in step.lines}
        return all(line.verdict is Verdict.AS_DECLARED for line in self._lines() if line.what in wanted)

    def _read_back(self, touched: set[str]) -> tuple[str, ...]:
        now = {line.what: line for line in self._lines()}
        wrong = []
        for what in sorted(touched):
            line = now.get(what)
            if line is None:
                wrong.append(f"the BMC no longer lists {what}")
            elif line.verdict is not Verdict.AS_DECLARED:
                found = line.found if line.found is not None else line.reason
                wrong.append(f"{what} is {found}, but {line.declared} is declared")
        if wrong:
            raise FirmwareError(
                f"The update succeeded, but the versions are not as declared: {'; '.join(wrong)}.",
                hint=_AGAIN,
            )
        return tuple(f"{what} {now[what].found}" for what in sorted(touched))


def _said(task: UpdateTask) -> str:
    return "; ".join(task.messages) or "its BMC gives no reason"
