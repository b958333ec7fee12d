"""Alert and recording rules as typed data: what is monitored, when it is a fault, and how to respond."""
