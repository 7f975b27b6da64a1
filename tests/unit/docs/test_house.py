"""The house stays as it is measured: no circle, no class name twice, plain words."""

import house


def test_no_modules_import_in_a_circle() -> None:
    assert house.circle() == []


def test_a_class_name_stands_for_one_thing() -> None:
    assert house.doubles() == {}


def test_nobody_else_asks_which_protocol_or_algorithm_it_is() -> None:
    assert house.questions() == []


def test_the_words_are_the_field_s() -> None:
    assert house.private_words() == []
