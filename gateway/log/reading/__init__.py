"""Reading of a log: cursors, filters, places, and the removal of old records."""
