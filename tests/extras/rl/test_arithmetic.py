"""Sums as tokens: every prompt once, right answers, and what is refused."""

import numpy as np
import pytest

from stalesim.simulator.extras.rl.arithmetic import Arithmetic
from stalesim.simulator.parts.errors import ScenarioError

CHARACTERS = "0123456789+="


@pytest.mark.parametrize(("largest", "shown"), [(5, "3+4=07"), (12, "03+04=07")])
def test_every_sum_stands_once_in_the_training_or_the_test_rows(
    largest: int, shown: str
) -> None:
    data = Arithmetic(largest=largest).make()
    assert data.has_tokens
    assert data.num_classes == len(CHARACTERS)
    assert data.answer == len(str(2 * largest)) == 2
    count = (largest + 1) ** 2
    assert len(data.y_test) == np.ceil(0.2 * count)
    found = []
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        np.testing.assert_array_equal(x[:, 1:], y[:, :-1])
        whole = np.concatenate([x[:, :1].astype(int), y], axis=1)
        found += ["".join(CHARACTERS[token] for token in row) for row in whole]
    assert shown in found
    prompts = {text.partition("=")[0] for text in found}
    assert len(found) == len(prompts) == count
    for text in found:
        prompt, _, answer = text.partition("=")
        assert sum(map(int, prompt.split("+"))) == int(answer)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scale": "unit"}, "scale must be raw for arithmetic, whose .* got 'unit'"),
        ({"classes": [0, 1]}, "classes must not be set for arithmetic, each of whose"),
        ({"largest": 0}, "largest"),
        ({"largest": 1000}, "largest"),
    ],
)
def test_mistakes_are_told(options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Arithmetic.model_validate(options)


def test_a_limit_beyond_the_sums_is_refused() -> None:
    with pytest.raises(ScenarioError, match="limit must be at most the 80 training"):
        Arithmetic(limit=81).make()
    assert len(Arithmetic(limit=20).make().y_train) == 20
