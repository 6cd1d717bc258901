"""A training run from config to run folder: check, render, train, validate, record."""

import hashlib
import time
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from ad4edu_train.config import TrainConfig
from ad4edu_train.data.corpus import Corpus, load_corpus, refuse_test_labels, seen_in_sft
from ad4edu_train.data.rows import PreferencePair
from ad4edu_train.data.splits import split_pairs
from ad4edu_train.errors import ConfigError, DataError
from ad4edu_train.policy.load import public_name, refuse_missing_folders
from ad4edu_train.training import report
from ad4edu_train.training.preflight import Preflight, render_pairs
from ad4edu_train.training.run_folder import RunFolder, run_hash


def train(config: TrainConfig) -> RunFolder | None:
    """Train as configured. Returns the run folder, or None for a dry run. Raises UserError for what the user can mend."""
    refuse_test_labels(config.data)
    refuse_missing_folders(config.model)
    _refuse_unready(config)
    corpus = load_corpus(config.data)
    report.print_corpus(corpus, config)
    digest = _adapter_sha256(config.model.adapter)
    name = f"{config.experiment_name}-{run_hash(config, corpus.inspection.digests, digest)}"
    finished = RunFolder(Path(config.trainer.output_root) / name)
    if finished.record().get("status") == "finished" and not config.dry_run:
        print(f"{finished.path} is finished: these settings on these data were trained already. Nothing to do.")
        finished.mark_latest(config.experiment_name)
        return finished
    train_pairs, validation_pairs, excluded = _split(config, corpus)

    # Everything above runs without torch, so a mistake in settings or data shows within seconds.
    from ad4edu_train.training.session import Session

    session = Session(config)
    training = _render(config, train_pairs, session, "training")
    validation = _render(config, validation_pairs, session, "validation")
    session.load()
    facts = {
        "status": "running",
        "synthetic_data": corpus.synthetic,
        "experiment": config.experiment_name,
        "model": public_name(config.model.path),
        "model_revision": config.model.revision,
        "reference": session.reference_in_words(),
        "precision": {"base": config.model.dtype, "adapter": config.lora.dtype, "autocast": config.trainer.precision},
        "trainable_parameters": session.parts,
        "data_sha256": corpus.inspection.digests,
        "adapter_sha256": digest,
        "rows": dict(corpus.inspection.rows),
        "rows_dropped": corpus.dropped,
        "pairs": {"training": len(training.pairs), "validation": len(validation.pairs), "excluded_subjects": excluded},
        "pairs_too_long": dict(training.too_long + validation.too_long),
        "prompt_prefix_mismatches": training.mismatched + validation.mismatched,
        "shared_lectures": len(corpus.inspection.shared_lectures()),
        "seen_in_sft": _sft_counts(config, corpus),
        "tokens": asdict(training.statistics()),
        "seed": config.trainer.seed,
        "steps": session.steps(len(training.pairs)),
        **report.software(),
    }
    report.print_plan(facts, config, training, session)
    if config.dry_run:
        print("\ndry_run=true: every check passed, nothing was trained.")
        return None
    folder = RunFolder.create(config, name)
    print(f"\nRun folder: {folder.path}")
    folder.mark_latest(config.experiment_name)
    folder.update(**facts)
    started = time.monotonic()
    session.run(folder, training, validation)
    folder.update(seconds=round(time.monotonic() - started, 1), peak_memory_bytes=report.peak_memory())
    report.print_result(folder, config)
    return folder


def _refuse_unready(config: TrainConfig) -> None:
    if config.data.prompt_view == "keyframe":
        raise ConfigError("data.prompt_view", "keyframe", "text; training on keyframes is not built yet")
    if config.model.quantization != "none":
        raise ConfigError("model.quantization", config.model.quantization, "none; quantised training is not built yet")


def _split(config: TrainConfig, corpus: Corpus) -> tuple[list[PreferencePair], list[PreferencePair], int]:
    data = config.data
    split = split_pairs(
        corpus.train,
        validation_fraction=data.validation_fraction,
        by=data.validation_by,
        seed=config.trainer.seed,
        subjects=corpus.subjects,
        exclude_subjects=tuple(data.exclude_subjects),
    )
    if not split.train:
        raise DataError("no training pair is left after data.validation_fraction and data.exclude_subjects.")
    train = split.train
    if data.max_train_pairs and data.max_train_pairs < len(train):
        train = _whole_moments(train, data.max_train_pairs, config.trainer.seed)
    # Validation costs two passes a pair; a cut of the training pairs cuts it in proportion.
    share = len(train) / len(split.train)
    return train, split.validation[: max(1, round(share * len(split.validation)))] if split.validation else [], split.excluded


def _whole_moments(pairs: list[PreferencePair], most: int, seed: int) -> list[PreferencePair]:
    """A seeded sample of `most` pairs that takes moments whole, but for the last one."""
    order = list(dict.fromkeys(pair.moment_id for pair in pairs))
    Random(seed).shuffle(order)
    rank = {moment: position for position, moment in enumerate(order)}
    return sorted(pairs, key=lambda pair: rank[pair.moment_id])[:most]


def _render(config: TrainConfig, pairs: list[PreferencePair], session: Any, what: str) -> Preflight:
    rendered = render_pairs(pairs, session.chat, max_tokens=config.data.max_tokens, too_long=config.data.too_long)
    if not rendered.pairs and pairs:
        raise DataError(f"no {what} pair is left: every one is longer than data.max_tokens={config.data.max_tokens}.")
    return rendered


def _sft_counts(config: TrainConfig, corpus: Corpus) -> dict[str, int]:
    """Test pairs whose prompt the starting SFT adapter saw; unchecked where data.sft is not given."""
    if config.model.adapter is None:
        return {}
    states = list(seen_in_sft(config.data.sft, corpus.test).values())
    return {state: states.count(state) for state in sorted(set(states))}


def _adapter_sha256(adapter: str | None) -> str | None:
    if adapter is None:
        return None
    with (Path(adapter) / "adapter_model.safetensors").open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()
