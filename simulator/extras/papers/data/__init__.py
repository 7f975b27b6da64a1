"""The papers' data sets, one a file or folder; a folder's `part` has the options.

`clinical` has the common part of stays in intensive care.
"""
