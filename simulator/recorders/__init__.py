"""Recorders: what a protocol tells of a world in motion becomes a timeline's rows.

- `recorder`: versions, registers, jobs and rows of any protocol with a server.
- `reading`: what a job has read, where a worker has several.
- `arrays`: rows and jobs of the lists that it keeps.
- `single`: the same, faster, where every commit applies one arrival at once.
"""
