"""Sentences are drawn of prose alone, where a number measures something."""

from evidence.generators.sentences import sentences

PAGE = """# A title of 3 words

It takes 3 s. By figure 3 and seed 7 it is
-0.5 [-0.6, -0.4]
in 2026. Of `x = 3` and MNIST5k nothing is said, as in [this](page3.md) and table 2.

| 1 | 2 |
| --- | --- |

- one of 2 items
- another

```sh
echo 3. Done 4.
```
"""


def test_sentences_with_numbers_are_those_of_the_prose() -> None:
    assert sentences(PAGE) == [
        "It takes 3 s.",
        "By figure 3 and seed 7 it is -0.5 [-0.6, -0.4] in 2026.",
        "one of 2 items",
    ]
