"""The controller's calls: a request in, the answer out."""
