"""The check of the controller's records, in a store that no server has open."""
