"""Mutation testing: small changes of the sources that some test must notice.

python -m tests.mutants map [TESTFILE...]             # what each test calls
python -m tests.mutants run --number 400 --jobs 2     # a random sample, resumable
python -m tests.mutants run --again                   # and the survivors once more
"""
