"""The built pages in a browser, opened from a folder: search, code, light and dark."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser import SCREENS, chromium, opened, violations

ROOT = Path(__file__).parents[3]
LINKS = "document.querySelectorAll('a.md-search-result__link')"

OF_THEME = ("landmark-unique",)
"""Rules that the theme's own script breaks: its buttons to copy code are landmarks."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the pages, all of them."""
    pytest.importorskip("material", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    # mkdocstrings reads folders, which an editable install does not have.
    command = [ROOT / ".ci" / "installed", sys.executable, "-m", "mkdocs", "build"]
    done = subprocess.run(
        [*command, "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


def address(site: Path) -> str:
    return (site / "index.html").as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize(
    ("word", "where"),
    [
        ("dropout", "own-model.html"),
        ("torch", "pytorch.html"),
        ("confidence", "figures.html"),
        ("error bar", "figures.html"),
        ("overwrite", "resume.html"),
    ],
)
def test_search_without_a_server_finds(
    site: Path, browser: Any, word: str, where: str
) -> None:
    with opened(browser, address(site), "desktop", "light") as page:
        page.locator(".md-search__input").click()
        # The theme forgets what is typed before its index is there.
        page.wait_for_function("typeof __index === 'object'")
        page.locator(".md-search__input").press_sequentially(word, delay=150)
        hits = page.locator("a.md-search-result__link")
        hits.first.wait_for(timeout=30_000)
        page.wait_for_function(f"[...{LINKS}].some(a => a.href.includes('{where}'))")


@pytest.mark.parametrize("screen", list(SCREENS))
def test_no_code_is_cut_on_the_first_page(
    site: Path, browser: Any, screen: str
) -> None:
    with opened(browser, address(site), screen, "light") as page:
        beyond = page.evaluate(
            "[...document.querySelectorAll('pre > code')]"
            ".map(code => [code.scrollWidth, code.clientWidth])"
        )
        assert len(beyond) >= 2
        assert all(inner <= outer for inner, outer in beyond), beyond
        # Nor does anything else make the page wider than the screen.
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= SCREENS[screen][0]


def test_light_and_dark_can_be_chosen(site: Path, browser: Any) -> None:
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    with opened(browser, address(site), "desktop", "light") as page:
        assert page.evaluate(scheme) == "default"
        page.get_by_title("Dark").click()
        assert page.evaluate(scheme) == "slate"
        page.goto((site / "tutorial.html").as_uri())
        assert page.evaluate(scheme) == "slate"  # it is kept
    with opened(browser, address(site), "desktop", "dark") as page:
        assert page.evaluate(scheme) == "slate"


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    handler = partial(Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", list(SCREENS))
@pytest.mark.parametrize("name", ["index", "playground"])
def test_pages_can_be_read_by_anyone(
    served: str, browser: Any, name: str, screen: str, scheme: str
) -> None:
    with opened(browser, f"{served}/{name}.html", screen, scheme) as page:
        found = [each for each in violations(page) if each[0] not in OF_THEME]
        width = page.evaluate("document.documentElement.scrollWidth")
    assert found == []
    assert width <= SCREENS[screen][0]


def test_the_playground_is_played_from_a_folder_and_by_links(
    site: Path, browser: Any
) -> None:
    address = (site / "playground.html").as_uri()
    with opened(browser, address, "desktop", "light") as page:
        first = page.locator("#pg-checksum").inner_text()
        page.locator("[name=protocol]").select_option("buffered")
        page.locator("[name=law]").select_option("pareto")
        page.locator("[name=clients]").fill("12")
        second = page.locator("#pg-checksum").inner_text()
        link, told = page.url, page.locator("#pg-told").inner_text()
        assert page.locator("#pg-gantt .pg-bar").count() >= 60
        assert page.locator("#pg-histogram .pg-law").count() == 0
        # A buffer of 3 and 12 clients: 11 / 3 commits.
        assert "in the steady state 3.667" in told
    assert first != second
    assert "kind: buffered" not in link
    with opened(browser, link, "phone", "dark") as page:
        assert page.locator("#pg-checksum").inner_text() == second
        assert page.locator("#pg-told").inner_text() == told
        scenario = page.locator("#pg-scenario").inner_text()
        assert "protocol: {kind: buffered, size: 3}" in scenario
        assert "law: pareto, b: 1.5" in scenario
    with opened(browser, address + "#law=none&seed=nothing", "phone", "dark") as page:
        assert page.locator("#pg-checksum").inner_text() == first
