"""Every family and release there is, looked up by name; an unknown name is an error.

`OsRelease` and `OsFamily` are what the rest of rackwright declares: in pydantic's models they are read
from names and written as names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError, core_schema
from typing_extensions import TypeAliasType

from rackwright.osfamily import debian, el
from rackwright.osfamily.family import Family
from rackwright.osfamily.release import Release

FAMILIES: Mapping[str, Family] = {family.name: family for family in (debian.DEBIAN, el.EL)}
RELEASES: Mapping[str, Release] = {release.id: release for release in (*debian.RELEASES, *el.RELEASES)}


_T = TypeVar("_T")


def os_family(name: str) -> Family:
    """The family of that name; KeyError for any other."""
    return _entry(FAMILIES, "operating-system family", name)


def os_release(id: str) -> Release:
    """The release the cluster file names so, e.g. `debian-12`; KeyError for any other."""
    return _entry(RELEASES, "operating-system release", id)


def _entry(table: Mapping[str, _T], what: str, name: str) -> _T:
    try:
        return table[name]
    except KeyError:
        raise KeyError(f"{name!r} is not a known {what}: {', '.join(table)}.") from None


@dataclass(frozen=True, eq=False)
class _ByName:
    """Lets pydantic read an entry of a table by its name, as it reads an enum, and write the name."""

    title: str
    description: str
    table: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        kind = source
        names = [repr(name) for name in self.table]
        expected = {"expected": " or ".join((", ".join(names[:-1]), names[-1]))}

        def read(value: object) -> object:
            if isinstance(value, kind):
                return value
            if isinstance(value, str) and value in self.table:
                return self.table[value]
            raise PydanticKnownError("enum", expected)

        return core_schema.no_info_plain_validator_function(
            read,
            serialization=core_schema.to_string_ser_schema(),
        )

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "description": self.description,
            "enum": list(self.table),
            "title": self.title,
            "type": "string",
        }


# named aliases: JSON Schema has each once, under its name
OsRelease = TypeAliasType(
    "OsRelease",
    Annotated[Release, _ByName("OsRelease", "Operating systems the roles support.", RELEASES)],
)
OsFamily = TypeAliasType(
    "OsFamily",
    Annotated[
        Family,
        _ByName("OsFamily", "Operating-system families (package names, paths, package tool).", FAMILIES),
    ],
)
