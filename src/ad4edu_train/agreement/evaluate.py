"""Score test_human with base, checkpoints and controls, and write agreement.json and pairs.jsonl."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ad4edu_train.agreement.controls import Values, longer_side, surface_classifier
from ad4edu_train.agreement.strata import Agreement, count, strata
from ad4edu_train.config import EvaluateConfig
from ad4edu_train.data.corpus import Corpus, load_corpus
from ad4edu_train.errors import ConfigError, DataError, UserError
from ad4edu_train.policy.load import refuse_missing_folders
from ad4edu_train.writing import write_private_rows, write_text

SCHEMA = "agreement/1"
BASE_PER_TOKEN = "base, log-prob per token"


def evaluate(config: EvaluateConfig) -> Path:
    """Compare checkpoints with the human labels. Returns the folder that holds the result."""
    checkpoints = [Path(path).expanduser().resolve() for path in config.checkpoints]
    if not checkpoints:
        raise ConfigError("checkpoints", [], "at least one run folder, e.g. 'checkpoints=[runs/demo-1a2b3c4d]'")
    missing = [str(path) for path in checkpoints if not path.is_dir()]
    if missing:
        raise ConfigError("checkpoints", missing, "folders that exist")
    if len(set(checkpoints)) < len(checkpoints):
        raise ConfigError("checkpoints", config.checkpoints, "each checkpoint once")
    refuse_missing_folders(config.model)
    corpus = load_corpus(config.data)
    labelled = [pair for pair in corpus.test if pair.human_winner is not None]
    if not corpus.test:
        raise DataError(
            "the data hold no test_human pairs, so there is nothing to agree with. Give data.root or data.test_human."
        )
    print(f"{len(corpus.test)} test pairs, {len(labelled)} with a human winner.")
    predictors, notes = _predict(config, corpus, checkpoints)
    result = {
        "schema": SCHEMA,
        "synthetic_data": corpus.synthetic,
        "data_sha256": corpus.inspection.digests,
        "pairs": len(corpus.test),
        "labelled_pairs": len(labelled),
        "moments": len({pair.moment_id for pair in corpus.test}),
        "lectures": len({pair.lecture for pair in corpus.test}),
        "checkpoints": [path.name for path in checkpoints],
        "notes": notes,
        "rows": [asdict(row) for row in table(corpus, predictors)],
    }
    folder = Path(config.out).expanduser() if config.out else checkpoints[0] / "agreement"
    _write(folder, result, corpus, predictors)
    return folder


def table(corpus: Corpus, predictors: dict[str, Values]) -> list[Agreement]:
    """Every predictor in every stratum, strata first and the aggregate last."""
    return [count(corpus.test, stratum, name, values) for stratum in strata(corpus.test) for name, values in predictors.items()]


def _predict(config: EvaluateConfig, corpus: Corpus, checkpoints: list[Path]) -> tuple[dict[str, Values], list[str]]:
    # torch comes with these imports; everything a user can get wrong in data or settings was found before.
    import torch

    from ad4edu_train.agreement import checkpoint as models

    if config.threads:
        torch.set_num_threads(config.threads)
    adapters = {path: models.adapter_of(path) for path in checkpoints}
    notes: list[str] = []
    for path in checkpoints:
        record = _record(path)
        models.refuse_other_base(record, config, path)
        notes += _data_notes(record, corpus, path)
    references = {path: models.reference_of(path) for path in checkpoints}
    scorer = models.PairScorer(config, corpus)
    runs = 1 + len(checkpoints) + sum(folder is not None for folder in references.values())
    with tqdm(total=scorer.distinct_prompts * runs, unit="prompt", desc="scoring") as bar:
        base = scorer.base(bar.update)
        predictors: dict[str, Values] = {}
        for path in checkpoints:
            policy = scorer.adapter(adapters[path], bar.update)
            folder = references[path]
            reference = scorer.adapter(folder, bar.update) if folder else base
            predictors[f"{path.name}, implicit reward"] = models.implicit_reward(policy, reference, scorer.right)
            predictors[f"{path.name}, shuffled prompts"] = models.implicit_reward(policy, reference, scorer.shuffled)
            predictors[f"{path.name}, log-prob per token"] = models.log_prob_preference(policy, scorer.right, per_token=True)
    predictors[BASE_PER_TOKEN] = models.log_prob_preference(base, scorer.right, per_token=True)
    predictors["base, log-prob summed"] = models.log_prob_preference(base, scorer.right, per_token=False)
    predictors["longer side"] = longer_side(corpus.test)
    predictors["AD-only classifier"] = surface_classifier(corpus.train, corpus.test)
    return predictors, notes


def _record(path: Path) -> dict[str, Any]:
    for folder in (path, path.parent.parent):
        if (folder / "run.json").is_file():
            return json.loads((folder / "run.json").read_text())
    return {}


def _data_notes(record: dict[str, Any], corpus: Corpus, path: Path) -> list[str]:
    if not record:
        return [f"{path.name} has no run.json: which pairs trained it is unknown, and so is leakage."]
    trained, here = record["data_sha256"], corpus.inspection.digests
    differing = sorted(name for name in trained if here.get(name) != trained[name])
    if differing:
        return [
            f"{path.name} was trained on other files than these ({', '.join(differing)}): leakage is checked for these files only."
        ]
    return []


def _write(folder: Path, result: dict[str, Any], corpus: Corpus, predictors: dict[str, Values]) -> None:
    rows = [
        {
            "pair_id": pair.pair_id,
            "moment_id": pair.moment_id,
            "stratum": pair.stratum,
            "axis": pair.axis,
            "type": pair.type,
            "human_winner": pair.human_winner,
            "preferences": {name: values.get(pair.pair_id) for name, values in predictors.items()},
        }
        for pair in corpus.test
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "agreement.json", json.dumps(result, indent=2) + "\n")
        write_private_rows(folder / "pairs.jsonl", rows)
    except OSError as error:
        raise UserError(f"out={folder} cannot be written: {error.strerror}.") from None
