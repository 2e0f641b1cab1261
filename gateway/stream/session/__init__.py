"""What one connection knows; no I/O."""
