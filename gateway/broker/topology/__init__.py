"""Exchanges and bindings, and the routes that they make."""
