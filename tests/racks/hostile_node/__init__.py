"""One of three nodes is broken or taken over: the others are still planned, applied and judged, despite its answers."""
