"""The door to a data set: load it by config, checked, or refused with one message."""

from dataclasses import dataclass
from pathlib import Path

from ad4edu_train.config import Data
from ad4edu_train.data.files import read_records
from ad4edu_train.data.fingerprints import fingerprint
from ad4edu_train.data.inspection import Inspection, inspect
from ad4edu_train.data.lectures import read_subjects
from ad4edu_train.data.rows import ChatPrompt, HumanPair, PreferencePair
from ad4edu_train.data.sources import DataFiles, locate
from ad4edu_train.errors import DataError

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
    """Only `train_prefs` trains: refuse a training source that is the human test set, or that carries human or machine labels."""
    if data.train is None:
        return
    if data.train == data.test_human:
        raise DataError("data.train is data.test_human: the human labels are for evaluation and never train.")
    path = Path(data.train)
    if path.is_file():
        first = next(read_records(path), None)
        columns = set(getattr(first, "values", {}))
        labels = sorted(name for name in columns if name.startswith(("rater_", "machine_", "human_winner", "option_a")))
        if labels:
            raise DataError(
                f"data.train={data.train} has the columns {', '.join(labels)}: it is a test_human table. Human labels are for "
                "evaluation, machine_* columns are never labels, and neither trains."
            )


def seen_in_sft(source: str | None, test: list[HumanPair]) -> dict[str, str]:
    """pair_id -> "seen", "unseen" or "unchecked": did the SFT set hold the prompt of a test pair?

    `source` is a Parquet or JSONL file with a prompt_id column (train_gen of the SFT data set); None where it is absent.
    """
    if source is None:
        return {pair.pair_id: "unchecked" for pair in test}
    seen = set()
    for record in read_records(Path(source)):
        prompt_id = getattr(record, "values", {}).get("prompt_id")
        if not isinstance(prompt_id, str):
            raise DataError(
                f"{source}, row {record.row}: no prompt_id, so what the SFT run saw cannot be compared with test_human."
            )
        seen.add(fingerprint(prompt_id))
    return {pair.pair_id: "seen" if fingerprint(pair.prompt_id) in seen else "unseen" for pair in test}
