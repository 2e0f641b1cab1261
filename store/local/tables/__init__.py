"""Tables: requests on them, and the removal of entries that nothing refers to."""
