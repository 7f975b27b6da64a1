"""The command line of mutation testing."""

import argparse

from tests.mutants import running

parser = argparse.ArgumentParser(prog="python -m tests.mutants")
commands = parser.add_subparsers(dest="command", required=True)
mapping = commands.add_parser("map", help="note what each test calls")
mapping.add_argument("files", nargs="*")
run = commands.add_parser("run", help="run tests on a random sample of mutants")
run.add_argument("--number", type=int, default=400)
run.add_argument("--again", action="store_true", help="the survivors too")
run.add_argument("--jobs", type=int, default=1, help="mutants at a time")
options = parser.parse_args()
if options.command == "map":
    running.map_tests(options.files)
else:
    running.run(options.number, again=options.again, jobs=options.jobs)
