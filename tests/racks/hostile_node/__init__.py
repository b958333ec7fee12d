"""One of three nodes is broken or taken over: whatever it answers, the others are planned, applied and judged."""
