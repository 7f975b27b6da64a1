"""A real browser without a window, for tests of pages; none is downloaded."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
"""Widths and heights of windows, pixels."""


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Starts this machine's browser; skips the test where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason='needs pip install "stalesim[browser]"'
    )
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"needs a browser: one of {', '.join(PROGRAMS)}")
    with playwright.sync_playwright() as driver:
        # Without its sandbox, since tests may be run by root in a container.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser: Any, address: str, screen: str, scheme: str) -> Iterator[Any]:
    """Opens a page in a window of its own; an error in its console fails the test.

    Args:
        browser: Browser of `chromium`.
        address: Address of the page.
        screen: Key of `SCREENS`.
        scheme: `light` or `dark`.
    """
    width, height = SCREENS[screen]
    window = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    )
    page, errors = window.new_page(), []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        page.goto(address)
        yield page
        assert errors == []
    finally:
        window.close()


def violations(page: Any) -> list[tuple[str, str]]:
    """Returns what axe-core finds against a page: rules, and elements that break them.

    Contrast, alternative texts, names, order of headings, and so on (WCAG 2.2 A, AA and
    best practices).
    """
    axe = pytest.importorskip("axe_playwright_python")
    page.evaluate(Path(axe.__file__).with_name("axe.min.js").read_text())
    found = page.evaluate("axe.run()")
    return [
        (broken["id"], node["html"])
        for broken in found["violations"]
        for node in broken["nodes"]
    ]
