"""The only package that uses pyinfra's driver side: State, Inventory, connectors, gevent."""
