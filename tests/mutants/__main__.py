"""The command line of mutation testing."""

import argparse

from tests.mutants import covering, running


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    commands = parser.add_subparsers(dest="command", required=True)
    mapping = commands.add_parser("map", help="find which test runs which line")
    mapping.add_argument("files", nargs="*")
    run = commands.add_parser("run", help="run tests on a random sample of mutants")
    run.add_argument("--number", type=int, default=400)
    run.add_argument("--again", choices=("survived",), help="run these once more")
    run.add_argument("--control", type=int, default=0, help="unchanged sources to run")
    run.add_argument("--part", default="1/1", help="1/2 and 2/2 share the work")
    options = parser.parse_args()
    if options.command == "map":
        covering.make(options.files)
    else:
        first, of = map(int, options.part.split("/"))
        running.run(options.number, options.again, options.control, (first, of))


main()
