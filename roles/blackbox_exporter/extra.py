"""Additional probes of the site."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl
from rackwright.model.text import mistake

_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
_TARGETS = {
    "icmp": (re.compile(_HOST), "an address or a name", "e.g. `10.0.0.1`"),
    "tcp": (re.compile(rf"{_HOST}:[0-9]{{1,5}}"), "host:port", "e.g. `10.0.0.1:443`"),
    "tls": (re.compile(rf"{_HOST}:[0-9]{{1,5}}"), "host:port", "e.g. `licences.example.com:636`"),
}
_URL: TypeAdapter[str] = TypeAdapter(HttpUrl)


class Extra(Frozen):
    """A target outside the cluster file."""

    probe: Literal["http", "icmp", "tcp", "tls"] = Field(
        description="`http`: answers a GET with 2xx. `icmp`: answers ping. `tcp`: takes connections. `tls`: has a "
        "certificate that nodes trust; its expiry is a metric."
    )
    target: str = Field(
        max_length=300, description="URL for `http`, host for `icmp`, host:port for the others."
    )

    @model_validator(mode="after")
    def _is_target(self) -> Self:
        if self.probe == "http":
            try:
                _URL.validate_python(self.target)
            except ValidationError:
                raise mistake(
                    f"{self.target} is not a URL.", "e.g. `https://portal.example.com/health`"
                ) from None
        else:
            pattern, form, example = _TARGETS[self.probe]
            if not pattern.fullmatch(self.target):
                raise mistake(f"{self.target} is not {form}.", example)
        return self
