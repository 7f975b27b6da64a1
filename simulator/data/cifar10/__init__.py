"""CIFAR-10: `part` (options and files), `record`, `standin`."""
