"""A drawn page, read back: its boxes, what they link to, and what it would load."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "input", "br"}
_LOADS = {"href", "src", "xlink:href", "data", "action", "srcset", "poster"}


@dataclass
class Drawn:
    """One box."""

    looks: frozenset[str]
    href: str | None
    hover: str = ""
    texts: list[str] = field(default_factory=list)
    glyphs: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.hover.split("\n")[0].partition(":")[0]

    @property
    def look(self) -> str:
        [look] = [one.removeprefix("k-") for one in self.looks if one.startswith("k-")]
        return look


class Page(HTMLParser):
    """Fails where elements are not nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, Drawn | None]] = []
        self.boxes: list[Drawn] = []
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.text = ""
        self.source = text
        self.feed(text)
        assert self.open == []
        styles = "".join(re.findall("<style>(.*?)</style>", text, re.DOTALL)) + " ".join(
            re.findall(r'style="([^"]*)"', text)
        )
        self.loads += re.findall(r"url\(([^)]*)\)", styles) + re.findall("@import[^;]*", styles)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attributes if name in _LOADS]
        if "id" in given:
            self.ids.append(given["id"] or "")
        classes = frozenset((given.get("class") or "").split())
        box = Drawn(classes, given.get("href")) if "b" in classes else None
        if box is not None:
            self.boxes.append(box)
        if tag == "use" and (inside := self._box()) is not None:
            inside.glyphs.append((given["href"] or "").removeprefix("#g-"))
        if tag not in _VOID:
            self.open.append((tag, box))

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        box = self._box()
        if box is not None and self.open[-1][0] == "title":
            box.hover += data
        elif box is not None and self.open[-1][0] == "text":
            box.texts.append(data)

    def _box(self) -> Drawn | None:
        return next((box for _, box in reversed(self.open) if box is not None), None)
