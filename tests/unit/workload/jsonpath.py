"""The part of kubectl's JSONPath that rackwright uses; checked against kubectl 1.20.2 and 1.33 (2026-11-28)."""

from __future__ import annotations

import json
import re

_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[\?\(@\.(\w+)==([^)]+)\)\]|\[(\*|\d+)\]")


def rendered(template, data):
    """What `kubectl get -o jsonpath=TEMPLATE` prints of the data; missing keys print nothing."""
    text, rest = _block(template, data)
    assert rest == ""
    return text


def _block(template, data):
    """Up to the matching `{end}`."""
    out = ""
    while template:
        if template[0] != "{":
            literal, brace, template = template.partition("{")
            out, template = out + literal, brace + template
            continue
        inside = _inside(template)
        template = template[len(inside) + 2 :]
        if inside == "end":
            return out, template
        if inside.startswith("range "):
            after = None
            for one in _found(inside.removeprefix("range "), data):
                text, after = _block(template, one)
                out += text
            template = _block(template, {})[1] if after is None else after
        elif inside.startswith('"'):
            out += json.loads(inside)
        else:
            out += " ".join(map(_shown, _found(inside, data)))
    return out, template


def _inside(template):
    quoted = False
    for place, one in enumerate(template):
        quoted ^= one == '"'
        if one == "}" and not quoted:
            return template[1:place]
    raise AssertionError(f"not closed: {template}")


def _found(path, data):
    found = [data]
    assert "".join(step[0] for step in _STEP.finditer(path)) == path, path
    for step in _STEP.finditer(path):
        name, key, value, index = step.groups()
        if name is not None:
            name = name.replace("\\", "")
            found = [one[name] for one in found if isinstance(one, dict) and name in one]
        elif key is not None:
            found = [one for many in found for one in many if one.get(key) == json.loads(value)]
        elif index == "*":
            found = [one for many in found for one in many]
        else:
            found = [many[int(index)] for many in found if len(many) > int(index)]
    return found


def _shown(value):
    return value if isinstance(value, str) else json.dumps(value)
