"""Alert and recording rules: what is watched, when it is a fault, and what to do then, as typed data."""
