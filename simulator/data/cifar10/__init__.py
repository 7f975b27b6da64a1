"""CIFAR-10: `part` (options and files), `pickled`, `record`, `standin`."""
