"""Opening of a log: its chunks walked, derived data restored, and the check of both."""
