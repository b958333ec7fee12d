"""Kubernetes objects as plain data: built by roles, applied and compared by operations and checks."""
