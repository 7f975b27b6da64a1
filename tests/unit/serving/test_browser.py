"""The page of `stalesim serve` in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator import studies
from tests.browser import SCREENS, chromium, opened, violations
from tests.unit.serving.served import serving, write_half, write_rows, write_standing
from tests.unit.studies.watched import WATCHED

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "s"
    short = {**WATCHED, "replicates": 3, "stop": {"commits": 500}}
    studies.simulate(short, folder)
    return folder


@pytest.fixture
def half(tmp_path: Path) -> Path:
    write_half(tmp_path / "s")
    write_standing(tmp_path / "s", ago_s=-3600)  # from then on it lives for an hour
    write_rows(tmp_path / "s")
    return tmp_path / "s"


def wait_until_drawn(page: Any) -> None:
    for _ in range(600):
        if not page.locator(".later").count():
            return
        page.wait_for_timeout(100)
    raise AssertionError("the figures are not there after a minute")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("which", ["half", "whole"])
def test_everyone_can_read_the_page(
    which: str, screen: str, scheme: str, browser: Any, request: Any
) -> None:
    with (
        serving(request.getfixturevalue(which)) as server,
        opened(browser, server.address, screen, scheme) as page,
    ):
        wait_until_drawn(page)
        images = page.locator("img").all()
        assert len(images) == (1 if which == "half" else 5)
        for image in images:
            assert image.evaluate("image => image.naturalWidth") > 100
            assert len(image.get_attribute("alt")) > 20
        assert violations(page) == []
        shown = "document.documentElement.scrollWidth"
        assert page.evaluate(shown) <= SCREENS[screen][0]


def test_the_page_follows_the_study_and_says_when_the_server_is_gone(
    half: Path, browser: Any
) -> None:
    with serving(half) as server:
        with opened(browser, server.address, "desktop", "light") as page:
            status = page.get_by_role("group", name="How far the study is")
            status.get_by_text("Under way: 1 of 4 runs").wait_for(timeout=20_000)
            wait_until_drawn(page)
            page.evaluate("window.kept = true")
            write_standing(half, ago_s=300)
            status.get_by_text("No sign of life for 0:05:").wait_for(timeout=20_000)
            runs = page.locator("#runs")
            runs.get_by_text("2 not run").first.wait_for(timeout=20_000)
            assert page.evaluate("window.kept")  # it was not loaded anew
            assert page.get_by_role("alert").count() == 0
        window = browser.new_context()
        page = window.new_page()
        page.goto(server.address)
        page.get_by_role("group", name="How far the study is").wait_for()
    alert = page.get_by_role("alert")
    alert.get_by_text("stalesim serve does not answer").wait_for(timeout=20_000)
    window.close()
