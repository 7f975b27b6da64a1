"""Evidence: studies, their results, and the pages that are generated from them.

`README.md` says what lies where. Nothing of the program imports this package.
"""
