"""What is learned: data sets, partitions, samplers, models, losses and metrics."""
