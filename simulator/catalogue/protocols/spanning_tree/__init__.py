"""Spanning tree: contributions taken at one model go up a tree, summed on their way."""
