"""Checks that built pages load nothing from elsewhere: python docs/offline.py SITE."""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ELSEWHERE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:@import\s+|url\()\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.I)
LINKS_THAT_LOAD_NOTHING = ("canonical", "prev", "next", "alternate", "edit")
LOADED = ("src", "srcset", "poster", "data", "background")


class Loaded(HTMLParser):
    """Collects the addresses from which a page would load something."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        wanted = [given[name] for name in LOADED if name in given]
        if tag == "link" and given.get("rel") not in LINKS_THAT_LOAD_NOTHING:
            wanted.append(given.get("href", ""))
        if "style" in given:
            self.found += IN_STYLES.findall(given["style"])
        if "mermaid" in given.get("class", "").split():
            self.found.append("mermaid, which the theme would load to draw a diagram")
        self.found += [address for address in wanted if ELSEWHERE.match(address)]


def elsewhere(site: Path) -> Iterator[tuple[Path, str]]:
    """Yields each file of a site with each address elsewhere that it loads."""
    for path in sorted(site.rglob("*")):
        if path.suffix not in (".html", ".css"):
            continue
        text = path.read_text(encoding="utf-8")
        found = IN_STYLES.findall(text)
        if path.suffix == ".html":
            page = Loaded()
            page.feed(text)
            found = page.found
        for address in found:
            yield path, address


def main(site: Path) -> int:
    """Prints what is loaded from elsewhere."""
    if not (site / "index.html").exists():
        sys.stderr.write(f"{site}: has no index.html; build the pages first\n")
        return 1
    found = list(elsewhere(site))
    for path, address in found:
        sys.stderr.write(f"{path.relative_to(site)} loads {address}\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
