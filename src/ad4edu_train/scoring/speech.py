"""How many words a voice speaks for a text."""

import re

from ad4edu_train.scoring.words import words

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_LETTERS = re.compile(r"(?<![A-Za-z])[A-Z]{2,5}(?![A-Za-z])")
_SAID_AS_WORDS = words("NASA RAM ROM DOS SQL PIN NATO UNESCO AIDS LASER GIF JPEG LIDAR BERT LASSO ANOVA RELU PAC MAP")
_SMALL_NUMBERS = 21  # zero to twenty are one word each


def number_words(figure: str) -> int:
    """Words in which a figure is spoken: 20 -> 1, 1,000 -> 2, 347 -> 5, 0.25 -> 4 (the digits after the point one by one)."""
    whole_part, _, decimals = figure.replace(",", "").partition(".")
    if len(whole_part) > 12:
        return len(whole_part) + len(decimals)
    value = int(whole_part or 0)
    return _integer_words(value) + (1 + len(decimals) if decimals else 0)


def _integer_words(value: int) -> int:
    if value < _SMALL_NUMBERS:
        return 1
    if value < 100:
        return 1 if value % 10 == 0 else 2
    if value < 1000:
        rest = value % 100
        return 2 + (1 + _integer_words(rest) if rest else 0)
    # Four figures that read as a year are spoken in two halves.
    if 1100 <= value < 2100 and value % 100:
        return _integer_words(value // 100) + max(_integer_words(value % 100), 2 if value % 100 < 10 else 1)
    for unit in (10**9, 10**6, 10**3):
        if value >= unit:
            rest = value % unit
            return _integer_words(value // unit) + 1 + (_integer_words(rest) if rest else 0)
    return 1


def spoken_words(plain: str, written: int) -> int:
    """Words as a voice speaks them, from the text and its number of written words, hyphenated parts apart.

    Figures, percent signs and forms that are spelt letter by letter are expanded.
    """
    count = written
    for match in _NUMBER.finditer(plain):
        figure = match.group().rstrip(",")
        count += number_words(figure) - figure.count(",") - figure.count(".") - 1
    count += plain.count("%")
    for match in _LETTERS.finditer(plain):
        if match.group() not in _SAID_AS_WORDS:
            count += len(match.group()) - 1
    return count
