"""Mutation testing: small changes of the sources that some test must notice.

python -m tests.mutants map [TESTFILE...]       # which test runs which line
python -m tests.mutants run --number 400        # a random sample, resumable
python -m tests.mutants run --again survived    # the survivors once more
"""
