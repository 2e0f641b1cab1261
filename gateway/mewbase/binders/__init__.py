"""Binders: documents that projections make of the events of channels, and queries on them."""
