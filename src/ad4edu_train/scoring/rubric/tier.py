"""The rubric tier as a function from descriptions to scores. Whoever calls it has approved the spending."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ad4edu_train.data.vocabulary import COMPONENTS
from ad4edu_train.errors import UserError
from ad4edu_train.scoring.moment import Moment
from ad4edu_train.scoring.rubric.grading import Grades, request
from ad4edu_train.scoring.rubric.judge import Judge
from ad4edu_train.scoring.scorer import Finding, Score, assemble, mean_rating, scorer_id, unusable
from ad4edu_train.scoring.standard import Standard
from ad4edu_train.scoring.text import Text
from ad4edu_train.scoring.tiers import Rate

ENDPOINT = "https://api.openai.com/v1"
ANSWER_TOKENS = 150
CHARACTERS_A_TOKEN = 4  # of English text, for the estimate
AT_ONCE = 4


def rubric_rater(standard: Standard, *, endpoint: str | None, model: str | None, cache: Path | None) -> Rate:
    """The function that rates with a judge. Raises UserError without a model's name or key; sends nothing by itself."""
    if not model:
        raise UserError("--tier rubric needs --judge-model, the name of a model at the endpoint.")
    judge = Judge(endpoint or ENDPOINT, cache or _default_cache())

    def rate(ads: Sequence[str], moments: Sequence[Moment]) -> list[Score]:
        texts = [Text(ad) for ad in ads]
        bodies = [
            None if unusable(text, standard) else request(text.raw, moment, standard, model)
            for text, moment in zip(texts, moments, strict=True)
        ]
        asked = [body for body in bodies if body is not None]
        print(estimate(asked, sum(judge.known(body) is not None for body in asked)), file=sys.stderr)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            grades = pool.map(lambda body: None if body is None else judge.grade(body), bodies)
            return [
                _score(text, moment, standard, model, one) for text, moment, one in zip(texts, moments, grades, strict=True)
            ]

    return rate


def estimate(bodies: Sequence[dict[str, Any]], known: int) -> str:
    """What is about to be asked, in tokens; said before anything is sent."""
    characters = sum(len(message["content"]) for body in bodies for message in body["messages"])
    tokens = characters // CHARACTERS_A_TOKEN
    rest = len(bodies) - known
    share = rest / len(bodies) if bodies else 0.0
    return (
        f"Judge: {len(bodies)} descriptions, {known} answered before. About {int(tokens * share):,} "
        f"tokens to send and {rest * ANSWER_TOKENS:,} to receive; "
        "multiply by the endpoint's prices."
    )


def _score(text: Text, moment: Moment, standard: Standard, model: str, grades: Grades | None) -> Score:
    if grades is None:
        return assemble(text, moment, standard, "rubric", [], model)
    places = standard.scoring.round_to
    components = {name: None if (grade := grades.grades[name]) is None else round(grade, places) for name in COMPONENTS}
    if moment.cursor is False:
        components["deixis"] = None
    return Score(
        rating=mean_rating(components, places),
        components=components,
        findings=_findings(text, standard, grades),
        scorer_id=scorer_id(standard, "rubric", model),
        rules_sha256=standard.sha256,
    )


def _findings(text: Text, standard: Standard, grades: Grades) -> tuple[Finding, ...]:
    """What the judge quotes, where the text holds it. The grades are the judge's own, so a finding costs nothing by itself."""
    rules = {rule.id: rule for rule in standard.rules}
    found = []
    for name, quote in grades.violations:
        start = text.raw.find(quote)
        if name in rules:
            span = (start, start + len(quote)) if quote and start >= 0 else (0, len(text.raw))
            found.append(Finding(name, *span, 0.0, rules[name].severity))
    return tuple(found)


def _default_cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "ad4edu_train"
    return Path(os.environ.get("AD4EDU_CACHE", root)) / "judge"
