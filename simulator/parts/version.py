"""The version of this package, as it is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("stalesim")
except PackageNotFoundError:  # read from a folder
    __version__ = "not installed"
