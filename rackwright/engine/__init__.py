"""The only room that touches the driver side of pyinfra (State, Inventory, connectors)."""
