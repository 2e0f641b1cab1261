"""The messages of the controller's calls: generated from `controller.proto` by `make proto`."""
