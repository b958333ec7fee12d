"""The only room that touches pyinfra's driver side: State, Inventory, connectors, gevent."""
