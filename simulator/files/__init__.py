"""Files: the inputs of a run, and the files of a study.

- `reading`: where a user's files are, how large they may be, and tables in them.
- `study`: the tables and the manifest of a study on disk.
- `timeline`: the columns of a timeline, which worlds fill and engines read.
- `inputs`: everything that the runs of a study read, by its content.
"""
