"""Methods whose server keeps a vector of each client, so that all count alike."""
