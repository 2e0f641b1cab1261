"""The settings: described, taken from where users write them, and put in words."""
