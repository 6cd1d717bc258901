"""What a run says on the screen and of its surroundings; nothing here changes what is trained."""

import platform
import resource
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ad4edu_train.config import TrainConfig
from ad4edu_train.data.corpus import Corpus
from ad4edu_train.training.preflight import Preflight
from ad4edu_train.training.run_folder import RunFolder

if TYPE_CHECKING:
    from ad4edu_train.training.session import Session

PACKAGES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets", "bitsandbytes", "ad4edu-train")
SYNTHETIC = "SYNTHETIC DATA with synthetic raters: no figure below speaks of people."
GIB = 1024**3
# Bytes of float32 gradient and two AdamW moments beside each trainable float32 weight.
ADAMW_BYTES = 4 + 4 + 8


def print_corpus(corpus: Corpus, config: TrainConfig) -> None:
    console = Console(highlight=False)
    if corpus.synthetic:
        console.print(SYNTHETIC, style="bold")
    shared = len(corpus.inspection.shared_lectures())
    console.print(
        f"Data: {len(corpus.train)} training pairs, {len(corpus.test)} test pairs (held back), {len(corpus.prompts)} moments; "
        f"no moment, prompt or AD shared, {shared} lectures shared."
    )
    for (column, value), count in sorted(corpus.inspection.unknown.items()):
        console.print(f"  {count} pairs have {column} {value!r}, which the card does not know; they are kept.")
    for kind, count in corpus.dropped.items():
        console.print(f"  dropped {count} rows: {kind}")
    if config.lora.dtype == "bfloat16":
        console.print("Warning: lora.dtype=bfloat16 loses updates smaller than its rounding; at rates near 1e-5 most are lost.")


def print_plan(facts: dict[str, Any], config: TrainConfig, training: Preflight, session: "Session") -> None:
    """The plan of a run, as `dry_run` shows it."""
    grid = _grid("What will be trained")
    tokens = training.statistics()
    trainable = sum(session.parts.values())
    rows = {
        "model": f"{facts['model']} ({facts['precision']['base']}, revision {config.model.revision or 'default'})",
        "reference": facts["reference"],
        "loss": f"{' + '.join(config.dpo.loss)}, beta {config.dpo.beta}",
        "pairs": f"{tokens.pairs} training, {facts['pairs']['validation']} validation",
        "left out": f"{sum(training.too_long.values())} too long, {facts['pairs']['excluded_subjects']} of excluded subjects",
        "tokens": f"prompt {tokens.prompt_mean} mean, {tokens.prompt_max} max; AD {tokens.ad_mean} mean, {tokens.ad_max} max",
        **_keyframe_row(facts["keyframes"]),
        "trainable": ", ".join(f"{part} {count:,}" for part, count in session.parts.items()),
        "steps": f"{facts['steps']} of {config.trainer.batch_size * config.trainer.accumulation * facts['processes']['count']} pairs",
        "memory estimate": _memory(session.weight_bytes(), trainable, tokens.longest, config, session),
    }
    for name, text in rows.items():
        grid.add_row(name, text)
    Console(highlight=False).print(grid)


def drift(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What differs in code and versions from when the run began: recorded, and said, since a continued run mixes both."""
    found = list(before.get("drift", []))
    changes = [
        f"{name} {old} -> {now['versions'].get(name)}"
        for name, old in before.get("versions", {}).items()
        if now["versions"].get(name) != old
    ]
    commit = before.get("git", {}).get("commit")
    if commit and now["git"]["commit"] != commit:
        changes.append(f"code {commit[:10]} -> {str(now['git']['commit'])[:10]}")
    if changes:
        print(f"Warning: this run began with other code or versions ({', '.join(changes)}); run.json records it under drift.")
    return found + changes


def print_result(folder: RunFolder, config: TrainConfig) -> None:
    """The closing table: validation by axis and label source, first and last step."""
    points = [row for row in folder.rows("metrics.jsonl") if "validation" in row]
    if points:
        last = points[-1]
        grid = Table(title=f"Validation at step {last['step']} (pairs of moments not trained on)", title_justify="left")
        for column in ("pairs by", "pairs", "right", "ties", "reward margin", "chosen log-prob change (nats)"):
            grid.add_column(column, justify="left" if column == "pairs by" else "right")
        for name, cell in last["validation"].items():
            change = f"{cell['chosen_log_prob_change']:+.2f}"
            grid.add_row(name, str(cell["pairs"]), str(cell["right"]), str(cell["ties"]), f"{cell['margin']:+.3f}", change)
        Console(highlight=False).print(grid)
    record = folder.record()
    if record["status"] == "finished":
        print(f"Finished {record['step']} steps in {record['seconds']:.0f} s. Adapter: {folder.adapter}")
        print(f"Compare it with human labels: python eval/human_agreement.py 'checkpoints=[{folder.path}]'")


def software() -> dict[str, Any]:
    """Versions, and the state of the code: nothing that names the machine or its user."""
    return {
        "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "git": _git(),
    }


def peak_memory() -> dict[str, int]:
    import torch

    peak = {"process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if torch.cuda.is_available():
        peak["gpu"] = torch.cuda.max_memory_allocated()
    return peak


def _memory(weights: int, trainable: int, longest: int, config: TrainConfig, session: "Session") -> str:
    """An estimate: weights + adapter with gradient and AdamW state + activations and logits of one micro-batch."""
    model = session.base.config.get_text_config()
    tokens = 2 * config.trainer.batch_size * longest
    width = 2 if config.trainer.precision == "bf16" else 4
    # About 34 activations of hidden size a token and layer without checkpointing (Korthikanti et al. 2022), one with it.
    per_layer = 1 if config.trainer.gradient_checkpointing else 34 // 2
    activations = tokens * model.hidden_size * model.num_hidden_layers * per_layer * width
    logits = tokens * model.vocab_size * 4
    adapter = trainable * (4 + ADAMW_BYTES)
    total = weights + adapter + activations + logits
    parts = [("weights", weights), ("adapter and optimiser", adapter), ("activations", activations), ("logits", logits)]
    return f"about {total / GIB:.1f} GiB: " + ", ".join(f"{name} {size / GIB:.1f}" for name, size in parts)


def _keyframe_row(keyframes: dict[str, Any] | None) -> dict[str, str]:
    if keyframes is None:
        return {}
    return {
        "keyframes": f"{keyframes['distinct']} distinct, {keyframes['tokens_mean']} tokens each on average, {keyframes['tokens_max']} at "
        f"most (data.max_pixels {keyframes['max_pixels']:,})"
    }


def _grid(title: str) -> Table:
    grid = Table(title=title, title_justify="left", show_header=False)
    grid.add_column("what", style="bold")
    grid.add_column("value", overflow="fold")
    return grid


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _git() -> dict[str, Any]:
    here = Path(__file__).parent
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": bool(changed.strip())}
