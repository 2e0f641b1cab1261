"""The settings: their descriptions, their sources, and their reference page."""
