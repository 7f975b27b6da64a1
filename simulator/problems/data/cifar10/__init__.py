"""CIFAR-10: `part` (options and files), `pickled` (Python version), `standin`."""
