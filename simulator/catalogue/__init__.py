"""The catalogue: leaf files, one idea each; no room below imports any of them.

`parts/parts.csv` lists the names by which scenarios choose them. A leaf imports the
core and, rarely, a sibling.
"""
