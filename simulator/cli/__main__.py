"""Runs the command line: `python -m simulator.cli`."""

from simulator.cli.commands import main

if __name__ == "__main__":
    main()
