"""PhysioNet 2012: options, files, features and the stand-in.

- `part`: options and files; `record`: what is published; `stays`: their format.
- `statistics`, `hourly`: features of a stay; `standin`: stays that are drawn.
"""
