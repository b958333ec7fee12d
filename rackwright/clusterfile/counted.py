"""Rules that count up from a first value."""

from __future__ import annotations

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from rackwright.documents.yaml_data import Data
from rackwright.model.options import Frozen
from rackwright.model.text import Address


def _or_short(schema: JsonSchemaValue) -> JsonSchemaValue:
    """A JSON Schema that also accepts the bare value of `first`."""
    short = {key: value for key, value in schema["properties"]["first"].items() if key != "title"}
    return {"anyOf": [short, schema], "description": schema.get("description", "")}


class _Counted(Frozen):
    """A rule that counts up from `first`; short form: the bare first value."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Data) -> Data:
        return value if isinstance(value, dict | cls) else {"first": value}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return _or_short(handler.resolve_ref_schema(handler(core)))


class AddressRule(_Counted):
    """Consecutive addresses in NodeSet order; short form: the first address."""

    first: Address = Field(description="Address of the first node, in the first rail.")
    step: int = Field(default=1, ge=1, le=65536, description="Increment from one node to the next.")


class PositionRule(_Counted):
    """Rack positions in NodeSet order, starting over in each rack; short form: the first position."""

    first: int = Field(ge=0, le=200)
    step: int = Field(default=1, ge=1, le=50)


class PortRule(_Counted):
    """Consecutive ports of each leaf; short form: the first port."""

    first: int = Field(ge=1, le=1024, description="First leaf port used by a node.")
    step: int = Field(default=1, ge=1, le=64, description="Increment from one node's port to the next.")
