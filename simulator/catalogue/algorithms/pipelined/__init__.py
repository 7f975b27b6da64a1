"""Pipelined SGD: each stage of a model steps by a gradient with its own delay."""
