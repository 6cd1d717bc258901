"""The door to a data set: load it by config, checked, or refused with one message."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ad4edu_train.config import Data
from ad4edu_train.data.files import Record, read_records
from ad4edu_train.data.fingerprints import fingerprint
from ad4edu_train.data.inspection import Inspection, inspect, read_rows
from ad4edu_train.data.keyframes import Keyframes
from ad4edu_train.data.lectures import read_subjects
from ad4edu_train.data.problems import Problems
from ad4edu_train.data.rows import ChatPrompt, HumanPair, PreferencePair, RowError
from ad4edu_train.data.sources import DataFiles, local_path, locate
from ad4edu_train.errors import ConfigError, DataError

ADVICE = "Mend the files, or leave these rows out with data.on_bad_row=drop (counted in run.json)."
LEAK_ADVICE = "Leaking rows are not dropped by data.on_bad_row: a split that leaks must be built again."


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Checked rows of a data set, and what the checks found."""

    files: DataFiles
    inspection: Inspection
    subjects: dict[str, str]
    train: list[PreferencePair]
    test: list[HumanPair]
    prompts: list[ChatPrompt]
    dropped: dict[str, int]

    @property
    def synthetic(self) -> bool:
        return self.files.synthetic

    def keyframes(self) -> Keyframes:
        """The keyframes of its prompts. Raises ConfigError when the data are single files and no folder was named."""
        if self.files.keyframes is None:
            raise ConfigError("data.keyframes", None, "a folder or hub id with keyframes/<lecture>/<frame>.jpg")
        return Keyframes(self.files.keyframes)


def load_corpus(data: Data) -> Corpus:
    """Read and check every file that `data` names. Raises DataError with every bad row, unless they are to be dropped."""
    files = locate(
        data.root,
        {
            "train": data.train,
            "test_human": data.test_human,
            "candidates": data.candidates,
            "prompts": data.prompts,
            "human_val": data.human_val,
            "gold": data.gold,
            "cursor_capability": data.cursor_capability,
            "subjects": data.subjects,
            "moment_order": data.moment_order,
        },
        keyframes=data.keyframes,
        revision=data.revision,
    )
    for path in files["train"]:
        _refuse_label_columns(path)
    found = inspect(files, keep=frozenset({"train", "test_human", "prompts"}))
    found.problems.leaks().raise_if_any(LEAK_ADVICE)
    if data.on_bad_row == "refuse":
        found.problems.raise_if_any(ADVICE)
    return Corpus(
        files=files,
        inspection=found,
        subjects=read_subjects(files),
        train=found.kept.get("train", []),
        test=found.kept.get("test_human", []),
        prompts=found.kept.get("prompts", []),
        dropped=found.problems.counts(),
    )


def refuse_test_labels(data: Data) -> None:
    """Only `train_prefs` trains: refuse a training source that is the human test set, or that carries its labels.

    Looks at single files only; `load_corpus` looks at whatever a folder or the hub holds.
    """
    if data.train is None:
        return
    if data.train == data.test_human:
        raise DataError("data.train is data.test_human: the human labels are for evaluation and never train.")
    path = local_path(data.train)
    if path.is_file():
        _refuse_label_columns(path)


def _refuse_label_columns(path: Path) -> None:
    first = next((record for record in read_records(path) if isinstance(record, Record)), None)
    columns = first.values if first else {}
    labels = sorted(name for name in columns if name.startswith(("rater_", "machine_", "human_winner", "option_")))
    if labels:
        raise DataError(
            f"{path}, the training table, has the columns {', '.join(labels)}: these belong to test_human. Human labels are "
            "for evaluation, machine_* columns are never labels, and neither trains. Give train_prefs as data.train."
        )


def seen_in_sft(source: str | None, test: list[HumanPair]) -> dict[str, str]:
    """pair_id -> "seen", "unseen" or "unchecked": did the SFT set hold the prompt of a test pair?

    `source` is a Parquet or JSONL file with a prompt_id column (train_gen of the SFT data set); None where it is absent.
    """
    if source is None:
        return {pair.pair_id: "unchecked" for pair in test}
    problems, path = Problems(), local_path(source)
    seen = {fingerprint(prompt_id) for _, prompt_id in read_rows(path, _sft_prompt_id, problems)}
    problems.raise_if_any(
        "What the SFT run saw cannot be compared with test_human. Mend data.sft, or set it to null (unchecked)."
    )
    return {pair.pair_id: "seen" if fingerprint(pair.prompt_id) in seen else "unseen" for pair in test}


def _sft_prompt_id(values: dict[str, Any]) -> str:
    prompt_id = values.get("prompt_id")
    if not isinstance(prompt_id, str):
        raise RowError("column prompt_id is missing, null or no text")
    return prompt_id
