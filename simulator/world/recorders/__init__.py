"""Recorders: turn a protocol's reports on a running world into a timeline's rows.

- `recorder`: versions, registers, jobs and rows of any protocol with a server.
- `arrays`: rows and jobs of the lists that it keeps.
"""
