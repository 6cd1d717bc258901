"""A training run from config to run folder: check, render, train, validate, record."""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ad4edu_train.config import TrainConfig
from ad4edu_train.data.corpus import Corpus, load_corpus, refuse_test_labels, seen_in_sft
from ad4edu_train.data.rights import terms
from ad4edu_train.data.rows import PreferencePair
from ad4edu_train.data.splits import split_pairs
from ad4edu_train.data.views import Prompts
from ad4edu_train.errors import ConfigError, DataError
from ad4edu_train.policy.load import ADAPTER_FOLDER, public_name, refuse_missing_folders
from ad4edu_train.training import processes, reference, report
from ad4edu_train.training.preflight import Preflight, render_pairs
from ad4edu_train.training.run_folder import RunFolder, run_hash
from ad4edu_train.training.trackers import opener, refuse_unready

if TYPE_CHECKING:
    from ad4edu_train.training.batches import BatchPlan
    from ad4edu_train.training.session import Session
    from ad4edu_train.training.tracking import Tracking


def train(config: TrainConfig) -> RunFolder | None:
    """Train as configured. Returns the run folder, or None for a dry run. Raises UserError for what the user can mend.

    Under torchrun every process calls this; the main one writes and speaks.
    """
    with _one_voice():
        processes.refuse_unfit_launch(config.distributed)
        refuse_test_labels(config.data)
        refuse_missing_folders(config.model)
        refuse_unready(config.tracker.name, config.tracker.mode)
        if config.lora.start and not (Path(config.lora.start).expanduser() / "adapter_model.safetensors").is_file():
            raise ConfigError("lora.start", config.lora.start, ADAPTER_FOLDER)
        corpus = load_corpus(config.data)
        report.print_corpus(corpus, config)
        adapters = _adapters_sha256(config)
        name = f"{config.experiment_name}-{run_hash(config, corpus.inspection.digests, adapters)}"
        folder = RunFolder(Path(config.trainer.output_root) / name)
        steps = _extension(config, folder)
        if folder.record().get("status") == "finished" and not config.dry_run and steps is None:
            print(f"{folder.path} is finished: these settings on these data were trained already. Nothing to do.")
            folder.mark_latest(config.experiment_name)
            _upload(config, folder, corpus)
            return folder
        return _train(config, corpus, adapters, folder, steps)


def _train(
    config: TrainConfig, corpus: Corpus, adapters: dict[str, str], folder: RunFolder, steps: int | None
) -> RunFolder | None:
    train_pairs, validation_pairs, excluded = _split(config, corpus)
    prompts = Prompts(config.data.prompt_view, corpus.prompts)
    frames = prompts.keyframes([*train_pairs, *validation_pairs])
    keyframes = corpus.keyframes() if config.data.prompt_view == "keyframe" else None
    if keyframes and processes.is_main():
        keyframes.check(frames)

    # Everything above runs without torch, so a mistake in settings or data shows within seconds.
    from ad4edu_train.training.session import Session

    session = Session(config, keyframes)
    training = _render(config, train_pairs, prompts, session, "training")
    validation = _render(config, validation_pairs, prompts, session, "validation")
    plan = _plan(config, training)
    session.load()
    facts = {
        "status": "running",
        "reason": None,
        "synthetic_data": corpus.synthetic,
        "experiment": config.experiment_name,
        "model": public_name(config.model.path),
        "model_revision": config.model.revision,
        "reference": reference.in_words(config),
        "precision": _precision(config),
        "processes": {"kind": config.distributed.kind, "count": processes.ranks()},
        "trainable_parameters": session.parts,
        "data_sha256": corpus.inspection.digests,
        "adapters_sha256": adapters,
        "rows": dict(corpus.inspection.rows),
        "rows_dropped": corpus.dropped,
        "pairs": {"training": len(training.pairs), "validation": len(validation.pairs), "excluded_subjects": excluded},
        "pairs_too_long": dict(training.too_long + validation.too_long),
        "prompt_prefix_mismatches": training.mismatched + validation.mismatched,
        "keyframes": _keyframe_facts(config, session, list(frames)),
        "layout": {"name": config.trainer.layout, "largest_batch_tokens": plan.largest, "split_moments": plan.split_moments},
        "shared_lectures": len(corpus.inspection.shared_lectures()),
        "seen_in_sft": _sft_counts(config, corpus),
        "tokens": asdict(training.statistics()),
        "seed": config.trainer.seed,
        "extended_to": steps,
        "steps": steps or session.steps(len(training.pairs)),
        **report.software(),
    }
    report.print_plan(facts, config, training, session)
    if config.dry_run:
        print("\ndry_run=true: every check passed, nothing was trained.")
        return None
    with folder.lock():
        folder.write_config(config)
        print(f"\nRun folder: {folder.path}")
        folder.mark_latest(config.experiment_name)
        facts["drift"] = report.drift(folder.record(), facts)
        folder.update(**facts)
        started = time.monotonic()
        with _tracking(config, folder, corpus) as tracking:
            session.run(folder, training, validation, steps, tracking)
        folder.update(seconds=round(time.monotonic() - started, 1), peak_memory_bytes=report.peak_memory())
        report.print_result(folder, config)
        _upload(config, folder, corpus)
    return folder


def _tracking(config: TrainConfig, folder: RunFolder, corpus: Corpus) -> "Tracking":
    from ad4edu_train.training.tracking import Tracking, told_settings

    tracker = config.tracker
    told = told_settings(config.model_dump(), synthetic=corpus.synthetic)
    return Tracking(
        opener(tracker.name, folder.path, project=tracker.project, mode=tracker.mode, settings=told, synthetic=corpus.synthetic)
    )


def _upload(config: TrainConfig, folder: RunFolder, corpus: Corpus) -> None:
    """Send the adapter to hub.repo_id, once; a run that is finished already tries again where an upload failed."""
    record = folder.record()
    if config.hub.repo_id is None or record.get("status") != "finished" or record.get("uploaded") or not processes.is_main():
        return
    from ad4edu_train.training.hub import upload_adapter

    url = upload_adapter(folder.adapter, config.hub.repo_id, note=terms(synthetic=corpus.synthetic))
    folder.update(uploaded=url)
    print(f"Uploaded to the private repository {url}")


@contextlib.contextmanager
def _one_voice() -> Iterator[None]:
    """Only the main process speaks; errors of the others still reach the screen."""
    with contextlib.ExitStack() as stack:
        if not processes.is_main():
            silence = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stdout(silence))
        yield


def _extension(config: TrainConfig, folder: RunFolder) -> int | None:
    """Steps to go on to, where trainer.extend_to asks for more than were done, or an earlier extension was cut short."""
    record, asked = folder.record(), config.trainer.extend_to
    begun, finished = record.get("extended_to"), record.get("status") == "finished"
    if asked is None or asked == begun:
        return None if finished else begun
    if not record:
        raise ConfigError("trainer.extend_to", asked, "null: there is no run of these settings yet that could be extended")
    if not finished:
        raise ConfigError(
            "trainer.extend_to", asked, f"{begun or 'null'} until the run has finished its {record['steps']} steps"
        )
    if asked < record["step"]:
        raise ConfigError("trainer.extend_to", asked, f"more than the {record['step']} steps that were done")
    if asked == record["step"]:
        return None
    print(f"Going on from step {record['step']} to {asked}; the rate schedule is laid anew over all {asked} steps.")
    return asked


def _precision(config: TrainConfig) -> dict[str, str]:
    model = config.model
    base: str = model.dtype
    if model.quantization == "nf4":
        base = f"nf4 with double quantisation, computed in {model.dtype}, stored as {model.quantization_storage}"
    return {"base": base, "adapter": config.lora.dtype, "autocast": config.trainer.precision}


def _keyframe_facts(config: TrainConfig, session: "Session", frames: list[str]) -> dict[str, Any] | None:
    """What the model sees of the keyframes; None in the text view."""
    if session.vision is None:
        return None
    tokens = [session.vision.tokens(name) for name in frames]
    return {
        "distinct": len(frames),
        "max_pixels": config.data.max_pixels,
        "tokens_mean": round(sum(tokens) / len(tokens), 1),
        "tokens_max": max(tokens),
        "processor": type(session.vision.processor).__name__,
    }


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


def _render(config: TrainConfig, pairs: list[PreferencePair], prompts: Prompts, session: "Session", what: str) -> Preflight:
    rendered = render_pairs(pairs, prompts, session.chat, max_tokens=config.data.max_tokens, too_long=config.data.too_long)
    if not rendered.pairs and pairs:
        raise DataError(f"no {what} pair is left: every one is longer than data.max_tokens={config.data.max_tokens}.")
    return rendered


def _plan(config: TrainConfig, training: Preflight) -> "BatchPlan":
    """The run's micro-batches. Raises ConfigError where one is larger than allowed, and where labels have no noise rate."""
    from ad4edu_train.training.batches import plan_batches

    trainer = config.trainer
    plan = plan_batches(
        training.pairs, layout=trainer.layout, batch_size=trainer.batch_size, seed=trainer.seed, epochs=trainer.epochs
    )
    if trainer.max_batch_tokens and plan.largest > trainer.max_batch_tokens:
        fitting = max(1, trainer.batch_size * trainer.max_batch_tokens // plan.largest)
        raise ConfigError(
            "trainer.batch_size",
            trainer.batch_size,
            f"about {fitting}: the largest micro-batch has {plan.largest} tokens, over trainer.max_batch_tokens="
            f"{trainer.max_batch_tokens} (raise trainer.accumulation to keep the pairs of a step)",
        )
    unknown = {str(item.pair.label_source) for item in training.pairs} - {"construction", "judge"}
    if config.dpo.label_noise.method != "none" and unknown:
        raise ConfigError(
            "dpo.label_noise.method", config.dpo.label_noise.method, f"none: no noise rate for labels of {sorted(unknown)}"
        )
    return plan


def _sft_counts(config: TrainConfig, corpus: Corpus) -> dict[str, int]:
    """Test pairs whose prompt the starting SFT adapter saw; unchecked where data.sft is not given."""
    if config.model.adapter is None and config.lora.start is None:
        return {}
    states = list(seen_in_sft(config.data.sft, corpus.test).values())
    return {state: states.count(state) for state in sorted(set(states))}


def _adapters_sha256(config: TrainConfig) -> dict[str, str]:
    """sha256 of the adapters that training starts from."""
    digests = {}
    for key, adapter in (("model.adapter", config.model.adapter), ("lora.start", config.lora.start)):
        if adapter:
            with (Path(adapter).expanduser() / "adapter_model.safetensors").open("rb") as weights:
                digests[key] = hashlib.file_digest(weights, "sha256").hexdigest()
    return digests
