"""The commands of `hutch` that speak to a running server."""
