"""Security rules: minimum versions, and modules that Secure Boot rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackwright.lock.choice import minimum_of
from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.versions import at_least, numbers
from rackwright.lock.words import Refusal


def safety_rules() -> tuple[Callable[[StackRequest, Choice], Iterator[Refusal]], ...]:
    """The rules of this file."""
    return (_minimum_versions, _secure_boot)


def below_minimum(request: StackRequest, choice: Choice) -> Iterator[str]:
    """A sentence for each version below the minimum-security table, or in none of its rows."""
    if request.wanted.security == "ignore":
        return
    driver = choice.driver
    if driver is not None:
        minimum = minimum_of(request, "nvidia-driver", driver.branch)
        if minimum is None:
            yield f"The minimum-security table has no row for driver branch {driver.branch}."
        elif not at_least(driver.version, minimum):
            yield (f"Driver {driver.version} is below the minimum-security version of its branch, {minimum}.")
    for component, name, version in (
        ("nvidia-container-toolkit", "Container toolkit", choice.container_toolkit),
        ("cuda-toolkit", "CUDA", choice.cuda),
        ("dcgm", "DCGM", choice.dcgm),
    ):
        minimum = minimum_of(request, component, None)
        if version is not None and minimum is not None and not at_least(version, minimum):
            yield f"{name} {version} is below the minimum-security version, {minimum}."


def _minimum_versions(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    if request.wanted.security != "enforce":
        return
    safer = _safer_driver(request, choice)
    for sentence in below_minimum(request, choice):
        hint = safer if safer and sentence.startswith("Driver ") else None
        yield Refusal(sentence, hint or "set `security: warn` to lock it with a note")


def _safer_driver(request: StackRequest, choice: Choice) -> str | None:
    """A driver of the same source that is safe enough and drives the same GPUs, or None."""
    rule, offer = request.rule, request.offer
    if rule is None or offer is None:
        return None
    for driver in sorted(offer.drivers, key=lambda driver: numbers(driver.version), reverse=True):
        minimum = minimum_of(request, "nvidia-driver", driver.branch)
        fitting = [kind for kind in driver.modules if kind in rule.modules]
        if minimum is not None and at_least(driver.version, minimum) and fitting:
            return f'`driver: {{version: "{driver.version}"}}` with `modules: {fitting[0]}` meets it'
    return None


def _secure_boot(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    wanted = request.wanted
    if not wanted.secure_boot or wanted.mok_enrolled:
        return
    hint = "enrol the site's module-signing key and set `mok_enrolled: true`"
    if choice.driver is not None:
        yield Refusal(
            "DKMS builds the driver's modules on the node; with Secure Boot they load only if "
            "the site's signing key (MOK) is enrolled.",
            hint,
        )
    dkms_from = request.tables.offers.doca_dkms_from
    if choice.doca is not None and at_least(choice.doca, dkms_from):
        yield Refusal(
            f"From DOCA {dkms_from} on, DKMS builds the OFED modules, unsigned; with Secure Boot "
            f"those of {choice.doca} load only if the site's signing key (MOK) is enrolled.",
            hint,
        )
