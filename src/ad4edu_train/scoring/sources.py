"""What is scored: pairs of a table, samples of a system, and the context of each. The only reader of predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ad4edu_train.data.files import Record, read_records
from ad4edu_train.data.inspection import read_rows
from ad4edu_train.data.lectures import moment_time, read_cursor_capability
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import (
    ChatPrompt,
    GoldMoment,
    Pair,
    RowError,
    candidate_pair,
    chat_prompt,
    gold_moment,
    human_pair,
    preference_pair,
    shown,
)
from ad4edu_train.data.sources import DataFiles, local_path, locate
from ad4edu_train.errors import DataError, UserError
from ad4edu_train.scoring.moment import UNKNOWN_TYPE, Moment, moment_of_prompt

MEND = "A score of some rows would not be the score of the table. Mend the rows, or take them out of the file."


@dataclass(frozen=True, kw_only=True)
class Contexts:
    """Context beside the prompt: reference descriptions by moment, rendered cursors by lecture, and how descriptions are played."""

    gold: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cursor: dict[str, bool] = field(default_factory=dict)
    ad_mode: str | None = None
    notes: tuple[str, ...] = ()

    def of(self, prompt: str, moment_id: str, lecture: str, kind: str | None) -> Moment:
        """The moment of a text prompt; its type where the prompt gives none."""
        moment = moment_of_prompt(prompt, self.gold.get(moment_id, ()), self.cursor.get(lecture), self.ad_mode)
        if moment.moment_type == UNKNOWN_TYPE and kind:
            return moment_of_prompt(f"Moment type: {kind}\n{prompt}", moment.gold, moment.cursor, self.ad_mode)
        return moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a system said of a moment; `sample_index` tells the samples of one moment apart."""

    prompt_id: str | None
    moment_id: str | None
    sample_index: int
    text: str


def files_beside(path: str) -> DataFiles:
    """The data files of the folder that a table belongs to (a table in data/ belongs to the folder above); none without one."""
    folder = local_path(path).absolute().parent
    try:
        return locate(str(folder.parent if folder.name == "data" else folder), {})
    except DataError:
        pass
    return DataFiles(root=None, files={}, keyframes=None, synthetic=False)


def contexts(files: DataFiles, *, gold: str | None, cursor: str | None, ad_mode: str | None, needs_gold: bool) -> Contexts:
    """Context from the files found, each replaced by a source of its own where given. Says in `notes` what is not known."""
    own = locate(None, {"gold": gold, "cursor_capability": cursor})
    notes = []
    golds = own["gold"] or files["gold"]
    problems, references = Problems(), {}
    for path in golds if needs_gold else ():
        for _, row in read_rows(path, gold_moment, problems):
            one: GoldMoment = row
            references[one.moment_id] = tuple(one.references)
    problems.raise_if_any(MEND)
    if needs_gold and not references:
        notes.append(
            "No reference descriptions (--gold): faithfulness is judged against speech, OCR and on-screen description alone."
        )
    cursors = read_cursor_capability(own if own["cursor_capability"] else files)
    if not cursors:
        notes.append("No cursor_capability.json (--cursor-capability): deixis is scored on every lecture.")
    return Contexts(gold=references, cursor=cursors, ad_mode=ad_mode, notes=tuple(notes))


def read_pairs(paths: Sequence[Path]) -> list[Pair]:
    """Typed rows of a table of pairs, chosen/rejected or option_a/option_b. Raises DataError with every row that cannot be read."""
    problems, pairs = Problems(), []
    for path in paths:
        pairs += [pair for _, pair in read_rows(path, _pair_parser(path), problems)]
    problems.raise_if_any(MEND)
    if not pairs:
        raise DataError(f"{', '.join(map(str, paths))}: no pairs to score.")
    return pairs


def _pair_parser(path: Path) -> Any:
    first = next((record.values for record in read_records(path) if isinstance(record, Record)), {})
    if "option_a" in first:
        return human_pair
    if "chosen" in first:
        return candidate_pair if "train_eligible" in first else preference_pair
    raise DataError(f"{path} has neither the columns chosen and rejected nor option_a and option_b. See docs/data_contract.md.")


def read_predictions(path: Path) -> list[Prediction]:
    """Samples of a system: rows {prompt_id or moment_id, sample_index (0 where it is missing), text}, such as samples.jsonl.

    Raises DataError for rows that cannot be read, and for two rows of one moment and sample_index.
    """
    problems, found = Problems(), []
    seen: dict[tuple[str | None, str | None, int], int] = {}
    for row, prediction in read_rows(path, _prediction, problems):
        key = (prediction.prompt_id, prediction.moment_id, prediction.sample_index)
        if key in seen:
            name = prediction.moment_id or prediction.prompt_id
            problems.add(path, DUPLICATE, row, name, f"sample_index {prediction.sample_index}, first in row {seen[key]}")
        seen.setdefault(key, row)
        found.append(prediction)
    problems.raise_if_any("Which of the two the system said is not known. Keep one row of each moment and sample_index.")
    if not found:
        raise DataError(f"{path}: no predictions to score.")
    return found


DUPLICATE = "the moment has this sample_index already\nA moment said twice would count twice, and against itself in novelty."


def _prediction(values: dict[str, Any]) -> Prediction:
    ids = {name: values.get(name) for name in ("prompt_id", "moment_id")}
    for name, value in ids.items():
        if value is not None and (not isinstance(value, str) or not value):
            raise RowError(f"{name} is {shown(value)}, not text")
    if not any(ids.values()):
        raise RowError("neither prompt_id nor moment_id says which moment was described")
    index, text = values.get("sample_index", 0), values.get("text")
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise RowError(f"sample_index is {shown(index)}, not a whole number from 0")
    if text is not None and not isinstance(text, str):
        raise RowError(f"text is {shown(text)}, not text")
    return Prediction(**ids, sample_index=index, text=text or "")


def read_prompts(paths: Sequence[Path]) -> list[ChatPrompt]:
    """Rows of dpo_prompts.jsonl: the moments that a system was asked about."""
    problems, prompts = Problems(), []
    for path in paths:
        prompts += [prompt for _, prompt in read_rows(path, chat_prompt, problems)]
    problems.raise_if_any(MEND)
    if not prompts:
        raise UserError(
            "No prompts: give dpo_prompts.jsonl with --prompts, or its folder with --data. Predictions are "
            "scored in its context."
        )
    return prompts


def read_order(paths: Sequence[Path]) -> dict[str, float]:
    """moment_id -> seconds from the start of its lecture."""
    problems = Problems()
    times: dict[str, float] = {}
    for path in paths:
        times.update(time for _, time in read_rows(path, moment_time, problems))
    problems.raise_if_any(MEND)
    if not times:
        raise UserError(
            "No moment order: give moment_order.jsonl ({moment_id, lecture, time_s}) with --moment-order, or "
            "its folder with --data.\n"
            "Novelty compares a description with what the same system said earlier in the lecture, so the order must be known."
        )
    return times


def sequences(
    predictions: Sequence[Prediction], prompts: Sequence[ChatPrompt], times: dict[str, float]
) -> Iterator[tuple[str, int, list[tuple[ChatPrompt, Prediction]]]]:
    """(lecture, sample_index, its predictions in lecture order). Raises DataError for a moment without prompt or without time."""
    by_prompt = {prompt.prompt_id: prompt for prompt in prompts}
    by_moment = {prompt.moment_id: prompt for prompt in prompts}
    strange, untimed = [], []
    joined: dict[tuple[str, int], list[tuple[ChatPrompt, Prediction]]] = {}
    for one in predictions:
        prompt = by_prompt.get(one.prompt_id or "") or by_moment.get(one.moment_id or "")
        if prompt is None:
            strange.append(one.moment_id or one.prompt_id or "")
        elif prompt.moment_id not in times:
            untimed.append(prompt.moment_id)
        else:
            joined.setdefault((prompt.lecture, one.sample_index), []).append((prompt, one))
    if strange:
        raise DataError(
            f"{len(strange)} of {len(predictions)} predictions are of no moment of the prompts: "
            f"{_some(strange)}. Give the prompts they were sampled from."
        )
    if untimed:
        raise DataError(
            f"{len(untimed)} of {len(predictions)} predictions have no place in the moment order: "
            f"{_some(untimed)}. Novelty needs the order of every moment."
        )
    for (lecture, index), rows in sorted(joined.items()):
        rows.sort(key=lambda row: (times[row[0].moment_id], row[0].moment_id))
        ids = [prompt.moment_id for prompt, _ in rows]
        if len(set(ids)) < len(ids):
            repeated = sorted({name for name in ids if ids.count(name) > 1})
            raise DataError(
                f"sample_index {index} of lecture {lecture} describes a moment twice: {_some(repeated)}. Keep one "
                f"row of each moment and sample_index."
            )
        yield lecture, index, rows


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
