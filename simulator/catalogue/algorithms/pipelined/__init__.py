"""Pipelined SGD: each stage of a model steps by a gradient of its own delay."""
