"""Alerts of nodes that rackwright itself takes down are silenced in Alertmanager while it does so."""
