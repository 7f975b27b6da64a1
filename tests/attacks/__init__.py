"""Attacks on the program as a whole: kills, full disks, damage, nonsense, load.

    python -m tests.attacks [AREA ...]    # all areas: about an hour on two cores

Each area yields cases with an outcome; tables go to evidence/pages/attacked.md. The
slow test of this folder makes a few cases of each.
"""
