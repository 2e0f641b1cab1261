"""Work that the controller does by itself, in rounds: retention, scaling, marks of time."""
