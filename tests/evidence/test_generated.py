"""What is generated of the evidence is as the results and lists have it."""

from evidence import generate


def test_pages_are_up_to_date() -> None:
    stale = [
        path.relative_to(generate.ROOT).as_posix()
        for path, text in generate.documents().items()
        if path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run python -m evidence.generate"


def test_tests_that_experiments_name_exist() -> None:
    rows = generate.experiments
    assert rows.mistakes(rows.read(generate.ROOT / rows.LISTED)) == []
