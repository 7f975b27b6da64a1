"""Runs the command line: `python -m stalesim`."""

from stalesim.simulator.cli import main

if __name__ == "__main__":
    main()
