"""What `eval/adedueval.py` does: files in, scores and summaries out."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ad4edu_train.data.prompt_fields import LABELS
from ad4edu_train.data.rows import HumanPair, Pair
from ad4edu_train.data.sources import DataFiles
from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring import sources
from ad4edu_train.scoring.explain import as_row, as_text, json_lines
from ad4edu_train.scoring.moment import Moment, moment_from
from ad4edu_train.scoring.scorer import score_sequence
from ad4edu_train.scoring.shipped import comparison, mismatch_lines, mismatches, shipped_scorer_id
from ad4edu_train.scoring.standard import Standard
from ad4edu_train.scoring.summary import ScoredPair, ScoredPrediction, summarize_pairs, summarize_predictions
from ad4edu_train.scoring.tiers import Tier, rater
from ad4edu_train.writing import write_private_rows, write_text

NO_MATCH = (
    "The shipped ratings are not this scorer's. To see how far the two agree, run again with "
    "--compare-shipped in the place of --check-shipped."
)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go: one row a side, the summary as Markdown, the summary as JSON."""

    out: Path | None = None
    md: Path | None = None
    json: Path | None = None

    def rows(self, rows: Iterable[dict[str, Any]]) -> None:
        if self.out:
            write_private_rows(_target(self.out), rows)

    def summary(self, values: dict[str, Any], markdown: str) -> None:
        if self.md:
            write_text(_target(self.md), markdown)
        if self.json:
            write_text(_target(self.json), json.dumps(values, indent=1) + "\n")


def score_pairs(
    tables: Sequence[Path],
    files: DataFiles,
    tier: Tier,
    standard: Standard,
    output: Output,
    *,
    context: sources.Contexts,
    shipped: str | None,
) -> str:
    """Score both sides of every pair and return the summary as Markdown. shipped: None, "check" or "compare".

    Raises DataError when "check" finds a shipped value that this scorer does not give.
    """
    if shipped == "check" and tier.name != "mech":
        raise UserError("--check-shipped recomputes the mechanical tier, which is what the data set ships. Leave --tier out.")
    pairs = sources.read_pairs(tables)
    rate = rater(tier, standard)
    moments = [context.of(pair.prompt, pair.moment_id, pair.lecture, pair.type) for pair in pairs]
    scores = rate(
        [ad for pair in pairs for ad in (pair.first.ad, pair.second.ad)], [moment for moment in moments for _ in range(2)]
    )
    rows = [ScoredPair(pair, *scores[2 * k : 2 * k + 2]) for k, pair in enumerate(pairs)]
    if shipped == "check":
        _refuse_other_scorer(tables, scores[0].scorer_id)
    output.rows(row for one in rows for row in _side_rows(one))
    from ad4edu_train.report.compliance import comparison_markdown, pairs_markdown

    if shipped == "compare":
        result = comparison(rows, shipped_scorer_id(tables[0]))
        markdown = comparison_markdown(result)
        output.summary(result, markdown)
        return markdown
    summary = summarize_pairs(rows, tier.name)
    notes = [*context.notes, *_prompt_notes(pairs, moments)]
    if shipped == "check":
        found = mismatches(rows, standard.scoring.round_to)
        if found:
            raise DataError("\n".join([*mismatch_lines(found, len(rows)), NO_MATCH]))
        notes.insert(0, f"Every shipped rating and component of {len(rows)} pairs is what this scorer gives.")
    markdown = pairs_markdown(summary, synthetic=files.synthetic, notes=notes)
    output.summary(summary | {"synthetic_data": files.synthetic, "notes": notes}, markdown)
    return markdown


def _refuse_other_scorer(tables: Sequence[Path], own: str) -> None:
    for path in tables:
        named = shipped_scorer_id(path)
        if named is not None and named != own:
            raise DataError(
                f"{path} ships ratings of the scorer {named}; this is {own}, so equal values are not to be expected.\n{NO_MATCH}"
            )


def _side_rows(row: ScoredPair) -> Iterator[dict[str, Any]]:
    names = ("option_a", "option_b") if isinstance(row.pair, HumanPair) else ("chosen", "rejected")
    pair = {name: getattr(row.pair, name) for name in ("pair_id", "moment_id", "lecture", "type", "axis")}
    for name, side, score in zip(names, (row.pair.first, row.pair.second), (row.first, row.second), strict=True):
        yield pair | {"side": name, "model": side.model} | as_row(score)


def _prompt_notes(pairs: Sequence[Pair], moments: Sequence[Moment]) -> list[str]:
    bare = sum(not (moment.transcript or moment.ocr or moment.on_screen) for moment in moments)
    if not bare:
        return []
    return [
        f"{bare} of {len(pairs)} prompts hold none of the labelled fields ({', '.join(LABELS.values())}): "
        f"rules that need context do not apply there."
    ]


def score_predictions(
    predictions: Path, files: DataFiles, tier: Tier, standard: Standard, output: Output, *, context: sources.Contexts
) -> str:
    """Score a system's descriptions in lecture order, with novelty, and return the summary as Markdown."""
    samples = sources.read_predictions(predictions)
    prompts = sources.read_prompts(files["prompts"])
    times = sources.read_order(files["moment_order"])
    joined = list(sources.sequences(samples, prompts, times))
    asked = {prompt.moment_id: prompt for prompt in prompts}
    moments = [
        [context.of(prompt.user_text, prompt.moment_id, lecture, prompt.type) for prompt, _ in rows]
        for lecture, _, rows in joined
    ]
    texts = [[sample.text for _, sample in rows] for _, _, rows in joined]
    # All at once: the models take batches, and the judge says beforehand what it will cost.
    scores = iter(rater(tier, standard)(list(chain(*texts)), list(chain(*moments))))
    rows: list[ScoredPrediction] = []
    said: set[tuple[str, int]] = set()
    details: list[dict[str, Any]] = []
    for (lecture, index, sequence), ads, known in zip(joined, texts, moments, strict=True):
        results = score_sequence(ads, known, standard=standard, scores=list(islice(scores, len(ads))))
        for (prompt, _), result in zip(sequence, results, strict=True):
            said.add((prompt.moment_id, index))
            rows.append(ScoredPrediction(lecture, prompt.moment_id, prompt.type or "unknown", index, result))
            more = {"system_score": result.system_score, "novelty": result.novelty, "declined": result.declined}
            details.append(
                {"moment_id": prompt.moment_id, "lecture": lecture, "sample_index": index} | more | as_row(result.score)
            )
    for index in sorted({sample.sample_index for sample in samples}):
        rows += [
            ScoredPrediction(prompt.lecture, name, prompt.type or "unknown", index, None)
            for name, prompt in asked.items()
            if (name, index) not in said
        ]
    output.rows(details)
    first = next(row.result.score for row in rows if row.result is not None)
    summary = summarize_predictions(rows, tier.name, first.scorer_id, first.rules_sha256)
    from ad4edu_train.report.compliance import predictions_markdown

    markdown = predictions_markdown(summary, synthetic=files.synthetic, notes=list(context.notes))
    output.summary(summary | {"synthetic_data": files.synthetic, "notes": list(context.notes)}, markdown)
    return markdown


def explain_text(ad: str, moment: Moment, tier: Tier, standard: Standard) -> str:
    """One description for reading."""
    return as_text(ad, rater(tier, standard)([ad], [moment])[0], standard)


def explain_rows(path: Path, tier: Tier, standard: Standard) -> Iterator[str]:
    """JSON lines, one for each row {text, context} of a JSONL file, in its order. Rows that are no such object give an error row."""
    rate = rater(tier, standard)
    texts: list[str] = []
    moments: list[Moment] = []
    errors: dict[int, str] = {}
    for number, (text, context, error) in enumerate(_explain_rows(path)):
        if error:
            errors[number] = error
            continue
        texts.append(text)
        moments.append(moment_from(context))
    scores = iter(rate(texts, moments))
    for number in range(len(texts) + len(errors)):
        yield next(json_lines([{"error": errors[number]}])) if number in errors else next(json_lines([as_row(next(scores))]))


def _explain_rows(path: Path) -> Iterator[tuple[str, Any, str]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"--jsonl {path}: {error.strerror or error}.") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            # Lone surrogates are let through: the checks must bear any text, and say so as a finding.
            row = json.loads(line.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError) as error:
            yield "", None, f"line {number} is not JSON ({error})"
            continue
        if not isinstance(row, dict):
            yield "", None, f"line {number} is no object with the keys text and context"
            continue
        text = row.get("text")
        yield text if isinstance(text, str) else "", row.get("context"), ""


def _target(path: Path) -> Path:
    if not path.parent.is_dir():
        raise UserError(f"{path}: the folder {path.parent} is not there.")
    return path
