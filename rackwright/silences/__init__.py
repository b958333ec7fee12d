"""Silences alerts in Alertmanager for nodes that rackwright itself takes down."""
