"""Opening of a log: its chunks walked, what derives from them restored, and the check of both."""
