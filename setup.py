"""Finds the packages of stalesim, whose folders pyproject.toml maps under one name."""

from setuptools import find_packages, setup

FOLDERS = find_packages(
    include=["simulator*", "analysis*"], exclude=["simulator.front"]
)

setup(packages=["stalesim", "stalesim.scenarios", *(f"stalesim.{f}" for f in FOLDERS)])
