"""What each stand-in is and how it is made: the end of `docs/standins.md`."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

MARK = "<!-- stand-ins: generated -->\n"
REAL = {
    "cifar10": "60,000 colour pictures of 3x32x32 pixels in ten classes of equal size",
    "credit": "30,000 clients of a bank, 33 columns once categories are one-hot, 22 % "
    "of them default",
    "fashion_mnist": "70,000 pictures of clothes of 28x28 pixels in ten classes of "
    "equal size",
    "mfeat": "2,000 digits in six views of 649 columns, ten classes of equal size",
    "mimic": "21,139 stays in intensive care, 17 variables, death in hospital; 714 "
    "statistics, or 48 hours",
    "modelnet40": "12,311 objects of 40 kinds, in 12 views",
    "nus_wide": "269,648 pictures with 634 low-level features and 1,000 tags",
    "parkinson": "252 persons with three recordings each, 753 features, 75 % ill",
    "physionet2012": "8,000 stays in intensive care, 37 variables, 14 % of which end "
    "in death",
    "speech": "speech of SWB300, frames of 260 features in 32,000 states",
    "spoken_digits": "3,000 recordings of ten digits by six speakers",
    "usps": "9,298 digits of 16x16 pixels, ten classes",
}
"""The published sets, in the size in which they are used here."""


def document(root: Path) -> str:
    """Returns the page; what stands above its mark is typed by hand.

    Args:
        root: Folder of the repository.
    """
    page = (root / "docs" / "standins.md").read_text(encoding="utf-8")
    parts = [page.partition(MARK)[0] + MARK]
    for path in sorted(root.glob("simulator/data/*/*standin.py")):
        name = path.parent.name
        called = f"{name}-hourly" if path.stem == "hourly_standin" else name
        first, rest = made(path)
        parts.append(
            f"### {called}-standin\n\n- the real set: {REAL[name]}.\n"
            f"- the stand-in: {first}\n\n{rest}\n"
        )
    return "\n".join(parts)


def made(path: Path) -> tuple[str, str]:
    """Returns what a stand-in is, and how it is made, as its code says."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    text = next(text for text in _docstrings(module) if "\n\n" in text)
    text = re.split(r"\n\n(?=[A-Z][a-z]+:)", text)[0]  # sections such as Raises
    first, _, rest = text.removeprefix("Returns ").partition("\n\n")
    return first, rest


def _docstrings(module: ast.Module) -> Iterator[str]:
    """Yields the docstrings of a module's public functions."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield inspect.cleandoc(ast.get_docstring(node) or "")
