"""One stream as chunks in a segment."""
