"""Chunks as bytes to batches of rows, without Spark."""
