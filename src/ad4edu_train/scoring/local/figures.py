"""Numbers in a text, in figures or in words, as values that can be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = {name: value for value, name in enumerate(_UNITS)} | {name: 10 * (k + 2) for k, name in enumerate(_TENS)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_ORDINALS = dict(
    zip(
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"],
        range(1, 11),
        strict=True,
    )
)
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[a-z]+")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and where it stands. in_words: written out, as counts of things usually are."""

    value: float
    start: int
    end: int
    in_words: bool


def figures(text: str) -> Iterator[Figure]:
    """Numbers of a lower-case text: 1,000 = 1000 = one thousand; twenty-five = 25; percent signs and separators do not matter."""
    total, run, start, end = 0.0, 0.0, -1, -1
    for match in _TOKEN.finditer(text):
        token = match.group()
        joined = start >= 0 and text[end : match.start()].strip(" -") in ("", "and")
        if start >= 0 and not (joined and (token in WORDS or token in _SCALES or token == "and")):
            yield Figure(total + run, start, end, True)
            total, run, start = 0.0, 0.0, -1
        if token[0].isdigit():
            yield Figure(float(token.replace(",", "")[:18]), match.start(), match.end(), False)
        elif token in WORDS:
            # "one two" are two numbers, "twenty two" is one.
            value = WORDS[token]
            if start >= 0 and run % 100 and not (run % 10 == 0 and value < 10):
                yield Figure(total + run, start, end, True)
                total, run, start = 0.0, 0.0, -1
            start = match.start() if start < 0 else start
            run, end = run + value, match.end()
        elif token in _SCALES:
            start = match.start() if start < 0 else start
            scale = _SCALES[token]
            if scale == 100:
                run = max(run, 1) * 100
            else:
                total, run = total + max(run, 1) * scale, 0.0
            end = match.end()
    if start >= 0:
        yield Figure(total + run, start, end, True)


def values(text: str) -> frozenset[float]:
    """Every number that a text holds; ordinal words count as their number."""
    low = text.lower()
    found = {figure.value for figure in figures(low)}
    return frozenset(found | {float(value) for word, value in _ORDINALS.items() if word in low})
