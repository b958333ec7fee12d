"""A picture as one page of HTML: no script, no font, no image, no address outside itself."""

from __future__ import annotations

from rackwright.drawing import nets, racks
from rackwright.drawing.model import Box, Picture, Room
from rackwright.drawing.racks import Elevation, Label, Scale
from rackwright.render import render


class Elevations:
    """Racks ready to be drawn by the template `drawing/_parts.html.j2`."""

    def __init__(self, rooms: tuple[Room, ...]) -> None:
        self.scale: Scale = racks.scale_of(rooms)
        self.labels: list[Label] = racks.labels(self.scale)
        self.drawn: list[tuple[Room, list[Elevation]]] = [
            (room, [racks.elevation(rack, self.scale) for rack in room.racks]) for room in rooms
        ]

    @staticmethod
    def hover(box: Box) -> str:
        """What hovering over a box shows."""
        head = f"{box.name}: {box.state}" if box.state else box.name
        return "\n".join((head, *box.lines))


def html(picture: Picture) -> str:
    """The whole page."""
    return render(
        "drawing/page.html.j2",
        picture=picture,
        elevations=Elevations(picture.rooms),
        nets=[(net, nets.diagram(net), nets.rows(net), nets.caption(net)) for net in picture.nets],
        card=(nets.CARD_WIDTH, nets.CARD_HEIGHT),
    )
