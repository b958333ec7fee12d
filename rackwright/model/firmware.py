"""Declared firmware of a SKU: versions, images to update to them, and BIOS attributes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rackwright.documents.yaml_data import Data
from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl, Sha256
from rackwright.model.text import mistake

FirmwareVersion = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z._+~:()/, -]{0,95}$")]
"""As the BMC prints it, e.g. `U58 v2.44 (01/17/2025)`."""
ComponentGlob = Annotated[
    str, StringConstraints(pattern=r"^[0-9A-Za-z*?][0-9A-Za-z*?._+:()/, #-]{0,127}$", min_length=1)
]
"""Id or name of firmware inventory entries; `*` matches any text, `?` one character."""
AttributeName = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_][0-9A-Za-z_.:#-]{0,127}$")]
"""As in the vendor's attribute registry, e.g. `SR-IOVSupport#00A6`."""
_TEXT_MAX = 256
AttributeText = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,256}$")]


def _plain(value: Data) -> Data:
    if not isinstance(value, str | int):  # bool is an int
        raise mistake(
            "Expected text, a whole number, or true or false.",
            "use the type from the vendor's attribute registry",
        )
    if isinstance(value, str) and not (len(value) <= _TEXT_MAX and value.isascii() and value.isprintable()):
        raise mistake("Not a valid BIOS attribute value: at most 256 ASCII characters.", "e.g. `Enabled`")
    return value


AttributeValue = Annotated[AttributeText | int | bool, BeforeValidator(_plain)]


class Release(Frozen):
    """The declared version of a component; short form: the bare version."""

    version: FirmwareVersion = Field(description="Version exactly as the BMC reports it.")
    file: Path | None = Field(
        default=None, description="Image with this version, relative to the cluster file."
    )
    sha256: Sha256 | None = Field(default=None, description="SHA-256 of `file`.")
    url: HttpUrl | None = Field(
        default=None, description="URL from which BMCs download the image, instead of `file`."
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Data) -> Data:
        return {"version": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_image(self) -> Self:
        if self.file is not None and self.url is not None:
            raise mistake("The image has both a `file` and a `url`.", "keep one of them")
        if (self.file is None) != (self.sha256 is None):
            raise mistake("`file` and `sha256` must be set together.", "`sha256sum FILE` prints the digest")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core))
        short = {key: value for key, value in schema["properties"]["version"].items() if key != "title"}
        return {"anyOf": [short, schema], "description": schema.get("description", "")}

    @property
    def has_image(self) -> bool:
        """Whether an image is declared."""
        return self.file is not None or self.url is not None


class Baseline(Frozen):
    """The firmware and BIOS settings of one SKU."""

    bios: Release | None = Field(default=None, description="BIOS (UEFI) of the system.")
    bmc: Release | None = Field(default=None, description="Firmware of the BMC.")
    components: dict[ComponentGlob, Release] = Field(
        default_factory=dict,
        description="Id or name in the BMC's firmware inventory to version, e.g. `HGX_FW_GPU_*`. `*` matches any "
        "text, `?` one character.",
    )
    bios_attributes: dict[AttributeName, AttributeValue] = Field(
        default_factory=dict,
        description="BIOS attribute to value, both as in the vendor's attribute registry, e.g. "
        "`ProcVirtualization: Enabled`.",
    )

    @property
    def releases(self) -> dict[str, Release]:
        """Declared versions by component (`bmc`, `bios` or a glob), in update order."""
        own = {"bmc": self.bmc, "bios": self.bios}
        return {name: one for name, one in own.items() if one is not None} | self.components


def matches(glob: str, text: str) -> bool:
    """Whether a glob matches an id or a name, ignoring case."""
    return fnmatchcase(text.casefold(), glob.casefold())
