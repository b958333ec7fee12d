"""What a site changes about an alert."""

from __future__ import annotations

from pydantic import Field

from rackwright.alerts.rule import Severity
from rackwright.model.options import Frozen


class Override(Frozen):
    """Changes to one alert; omitted fields stay as they are."""

    enabled: bool = Field(default=True, description="false: the rule is left out.")
    hold_seconds: int | None = Field(
        default=None, ge=0, le=86400 * 7, description="How long the fault lasts before the alert fires."
    )
    severity: Severity | None = Field(default=None, description="How urgent it is at this site.")
    thresholds: dict[str, float] = Field(
        default_factory=dict,
        description="Other values of its thresholds, by the names on the alert's page.",
    )
