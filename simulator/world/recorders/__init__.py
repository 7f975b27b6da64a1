"""Recorders: what a protocol tells of a world in motion becomes a timeline's rows.

- `recorder`: versions, registers, jobs and rows of any protocol with a server.
- `arrays`: rows and jobs of the lists that it keeps.
"""
