"""The papers' data sets, one a file or folder; a folder's `part` has the options.

`clinical` has what stays in intensive care have in common.
"""
