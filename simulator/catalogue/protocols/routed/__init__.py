"""Routed: tasks that are sent to clients, where they queue."""
