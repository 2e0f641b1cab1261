"""The check of what the controller keeps, in a store that no server has open."""
