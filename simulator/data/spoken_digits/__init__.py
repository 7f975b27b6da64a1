"""Spoken digits: options, files, features and the stand-in.

- `part`: options and files; `record`: what is published; `recordings`: their format.
- `spectrum`: features of a frame; `standin`: features that are drawn.
"""
