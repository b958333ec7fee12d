"""Many targets on one machine, for measuring what Prometheus needs: one program answers on paths, /metrics/N for target N.

    python -m tests.bench.scrape_farm PORT EXPOSITION SERIES

EXPOSITION is text recorded from a real exporter. Its series are the same for all targets, which distinguish them by
their labels; the values of gauges and counters move from scrape to scrape, since samples that never change take
less room than real ones do. SERIES: how many each target has.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from pathlib import Path

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{.*\})?) ([0-9.e+-]+)$")
_VARIANTS = 32


def bodies(text: str, series: int) -> list[bytes]:
    """The exposition with this number of samples and changed values, once for each variant that scrapes read in turn.

    A recorded text with fewer series is repeated under other names, which no rule reads.
    """
    recorded = [line for line in text.splitlines() if line and not line.startswith("#")]
    lines = [_copy(recorded[number % len(recorded)], number // len(recorded)) for number in range(series)]
    made = []
    for variant in range(_VARIANTS):
        generator = random.Random(variant)
        made.append("\n".join(_moved(line, variant, generator) for line in lines).encode() + b"\n")
    return made


def _copy(line: str, number: int) -> str:
    """The same sample as another series."""
    if number == 0:
        return line
    return f"copy{number}_{line}"


def _moved(line: str, variant: int, generator: random.Random) -> str:
    found = _SAMPLE.match(line)
    if found is None:
        return line
    value = float(found[2])
    if value in (0, 1):  # states stay as they are
        return line
    grown = value * (1 + variant / 1e4) if "_total" in found[1] else value * generator.uniform(0.98, 1.02)
    return f"{found[1]} {grown:.6g}"


async def serve(port: int, made: list[bytes]) -> None:
    """HTTP/1.1 with connections that stay open, until the program is ended."""
    answered = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                body = made[answered % len(made)]
                answered += 1
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), bodies(Path(sys.argv[2]).read_text(), int(sys.argv[3]))))
