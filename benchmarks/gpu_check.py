"""The stages of gpu_check.sh: each is one run of the product, judged from its run folder; a stage that cannot run is named with its reason."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from transformers.utils import logging

from ad4edu_train.demo.corpus import Settings
from ad4edu_train.demo.random_vlm import TINY_TEXT, TINY_VISION, write_vlm
from ad4edu_train.demo.write import write_corpus

ROOT = Path(__file__).parent.parent
GIB = 1024**3
# Qwen3-VL-8B-Instruct's widths (its config.json), with 4 of 36 decoder layers and 4 of 27 vision layers.
WIDE_TEXT: dict[str, Any] = {
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
}  # fmt: skip
WIDE_VISION: dict[str, Any] = {
    "depth": 4, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 4096, "patch_size": 16,
    "num_position_embeddings": 2304, "deepstack_visual_indexes": [1, 2, 3],
}  # fmt: skip
# Nats an AD, of about 40 tokens. In float32 the order of sums is all that differs; bfloat16 is measured, not judged.
EXACT = 1e-2


@dataclass(kw_only=True)
class Row:
    """A line of the closing table."""

    stage: str
    verdict: str
    seconds_a_step: float | None = None
    peak_gib: float | None = None
    note: str = ""


@dataclass(kw_only=True)
class Check:
    """The model and data that the stages share, and what they found."""

    work: Path
    small: bool
    rows: list[Row] = field(default_factory=list)

    def prepare(self) -> None:
        write_corpus(self.work / "data", Settings(moments=12, seed=0))
        size = (320, 180) if self.small else (1920, 1080)
        for path in (self.work / "data" / "keyframes").rglob("*.jpg"):
            Image.open(path).convert("RGB").resize(size).save(path, quality=90)
        if self.small:
            write_vlm("qwen3_vl", self.work / "model", text=TINY_TEXT["qwen3_vl"], vision=TINY_VISION["qwen3_vl"], spread=4.0)
        else:
            write_vlm("qwen3_vl", self.work / "model", text=WIDE_TEXT, vision=WIDE_VISION, dtype="bfloat16")

    def settings(self, name: str, *overrides: str) -> list[str]:
        pixels = 50176 if self.small else 1920 * 1080
        return [
            *(
                "experiment=debug_vlm",
                f"experiment_name={name}",
                f"model.path={self.work / 'model'}",
                f"data.root={self.work / 'data'}",
            ),
            *(
                f"data.max_pixels={pixels}",
                "data.max_tokens=16384",
                "data.max_train_pairs=8",
                "trainer=gpu",
                "trainer.batch_size=2",
            ),
            *("trainer.accumulation=1", "trainer.max_steps=4", "trainer.save_every=2", "trainer.log_every=1"),
            *("trainer.learning_rate=1e-3", "trainer.num_workers=2", "trainer.warmup_steps=1", "data.validation_fraction=0.05"),
            *(f"trainer.output_root={self.work / 'runs'}", "trainer.threads=null", *overrides),
        ]

    def train(
        self, stage: str, name: str, *overrides: str, ranks: int = 1, wanted: dict[str, Any] | None = None, timed: bool = True
    ) -> Path | None:
        """One run of train_dpo.py. Passes when it finishes and its record holds `wanted`. Returns its folder."""
        launch = [sys.executable]
        if ranks > 1:
            launch += [
                "-m",
                "torch.distributed.run",
                f"--nproc_per_node={ranks}",
                "--rdzv-backend=c10d",
                "--rdzv-endpoint=127.0.0.1:0",
            ]
        done = subprocess.run(
            [*launch, "train_dpo.py", *self.settings(name, *overrides)], cwd=ROOT, capture_output=True, text=True, check=False
        )
        folder = self.work / "runs" / f"{name}-latest"
        if done.returncode or not folder.exists():
            reason = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
            self.rows.append(Row(stage=stage, verdict="FAILED", note=reason[:300]))
            return None
        record = json.loads((folder / "run.json").read_text())
        steps = [row for row in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()) if "loss" in row]
        # The first step warms up kernels and workers.
        seconds = (steps[-1]["seconds"] - steps[0]["seconds"]) / (len(steps) - 1) if timed else None
        other = {key: record[key] for key, value in (wanted or {}).items() if record[key] != value}
        memory = record["peak_memory_bytes"]
        self.rows.append(
            Row(
                stage=stage,
                verdict=f"FAILED: {other}" if other else "passed",
                seconds_a_step=seconds,
                peak_gib=memory.get("gpu", memory["process"]) / GIB,
                note=f"loss {steps[0]['loss']:.4f} to {steps[-1]['loss']:.4f}, {record['images_seen']} images",
            )
        )
        return folder


def log_probs(check: Check) -> None:
    """Shared-prompt log-probs against whole sequences, in float32 and in bfloat16."""
    from ad4edu_train.config import Model
    from ad4edu_train.data.corpus import read_rows
    from ad4edu_train.data.keyframes import Keyframes
    from ad4edu_train.data.problems import Problems
    from ad4edu_train.data.rows import chat_prompt, preference_pair
    from ad4edu_train.data.views import Prompts
    from ad4edu_train.policy.chat import Chat
    from ad4edu_train.policy.load import load_base, load_tokenizer
    from ad4edu_train.policy.log_probs import score_all
    from ad4edu_train.policy.vision import load_vision

    data, problems = check.work / "data", Problems()
    pairs = [pair for _, pair in read_rows(next(data.glob("data/train_prefs*")), preference_pair, problems)][:4]
    prompts = Prompts("keyframe", [row for _, row in read_rows(data / "dpo_prompts.jsonl", chat_prompt, problems)])
    for dtype in ("float32", "bfloat16"):
        model = Model(
            path=str(check.work / "model"), revision=None, adapter=None, dtype=dtype, attention="sdpa", quantization="none",
            quantization_storage="uint8", thinking=False,
        )  # fmt: skip
        vision = load_vision(model, Keyframes(data), 50176 if check.small else 1920 * 1080)
        chat = Chat(load_tokenizer(model), thinking=False, vision=vision)
        sides = [chat.render(prompts.of(pair), side.ad) for pair in pairs for side in (pair.first, pair.second)]
        base = load_base(model).eval().to("cuda" if torch.cuda.is_available() else "cpu")
        scores = score_all(base, sides, vision=vision)
        worst = max(abs(scores[side].total - _whole(base, side, vision)) for side in sides)
        passed = worst < EXACT or dtype == "bfloat16"
        note = f"largest difference of an AD's log-prob, shared prompt against whole sequence: {worst:.2g} nats"
        check.rows.append(Row(stage=f"log-probs, {dtype}", verdict="passed" if passed else "FAILED", note=note))
        del base
        torch.cuda.empty_cache()


def _whole(model: Any, side: Any, vision: Any) -> float:
    ids = torch.tensor([side.prompt_ids + side.completion_ids], device=model.device)
    inputs = {key: value.to(model.device) for key, value in vision.inputs(side.keyframes).items()}
    inputs["mm_token_type_ids"] = vision.token_types(ids)
    with torch.no_grad():
        logits = model(input_ids=ids, **inputs).logits[0, len(side.prompt_ids) - 1 : -1].float()
    return float(logits.log_softmax(-1).gather(1, ids[0, len(side.prompt_ids) :, None]).double().sum())


def training(check: Check) -> None:
    """Both layouts, checkpointing on and off, 4-bit weights, 8-bit optimiser. The tree's own check runs before its first step."""
    check.train("bfloat16, stock rows", "stock", "trainer.layout=stock", "trainer.precompute_reference=false")
    check.train("bfloat16, moment tree", "tree")
    check.train("bfloat16, tree, checkpointing off", "off", "trainer.gradient_checkpointing=false")
    nf4 = ("model.quantization=nf4", "trainer.optimizer=adamw_8bit")
    check.train("QLoRA, 8-bit AdamW", "qlora", *nf4)


def resume(check: Check) -> None:
    """A run cut after its first checkpoint ends as the unbroken one: same data order, RNG and optimiser state."""
    folder = check.train("resume: the unbroken run", "resume")
    if folder is None:
        return
    unbroken = _losses(folder)
    shutil.rmtree(folder / "checkpoints" / "checkpoint-4")
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"status": "running"}))
    if check.train("resume: continued from its checkpoint", "resume", timed=False) is None:
        return
    worst = max(abs(one - other) for one, other in zip(unbroken, _losses(folder), strict=True))
    check.rows[-1].note = f"largest difference of a loss to the unbroken run: {worst:.2g}"
    # Kernels on GPUs add in any order, so equal to the last bit is asked of CPUs only.
    if worst > (1e-2 if torch.cuda.is_available() else 0):
        check.rows[-1].verdict = "FAILED"


def sharding(check: Check) -> None:
    """Two processes, weights sharded; on CPUs two processes with whole copies."""
    if torch.cuda.device_count() >= 2:
        for kind in ("ddp", "fsdp2"):
            check.train(
                f"two GPUs, {kind}", kind, f"distributed={kind}", ranks=2, wanted={"processes": {"kind": kind, "count": 2}}
            )
    elif check.small:
        check.train("two processes, ddp", "ddp", "distributed=ddp", ranks=2, wanted={"processes": {"kind": "ddp", "count": 2}})
    else:
        check.rows.append(Row(stage="two GPUs, ddp and fsdp2", verdict="skipped", note=f"{torch.cuda.device_count()} GPU here"))


def _losses(folder: Path) -> list[float]:
    rows = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [row["loss"] for row in rows if "loss" in row]


STAGES: tuple[Callable[[Check], None], ...] = (log_probs, training, resume, sharding)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a tiny model, on the CPU too: only tells that every line runs")
    small = parser.parse_args().small
    if not small and not torch.cuda.is_available():
        print("No GPU is visible to PyTorch here. --small runs the same lines on the CPU with a tiny model.", file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        check = Check(work=Path(work), small=small)
        check.prepare()
        for stage in STAGES:
            began = time.monotonic()
            stage(check)
            print(f"{stage.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU, tiny model: times and memory mean nothing"
    table = Table(
        title=f"{device}, PyTorch {torch.__version__}, {time.monotonic() - started:.0f} s in all", title_justify="left"
    )
    for column in ("stage", "verdict", "s a step", "peak GiB", "note"):
        table.add_column(column, justify="right" if column in ("s a step", "peak GiB") else "left", overflow="fold")
    for row in check.rows:
        figures = ("" if value is None else f"{value:.2f}" for value in (row.seconds_a_step, row.peak_gib))
        table.add_row(row.stage, row.verdict, *figures, row.note)
    Console(width=int(os.environ.get("COLUMNS", "140")), highlight=False).print(table)
    return int(any(row.verdict.startswith("FAILED") for row in check.rows))


if __name__ == "__main__":
    raise SystemExit(main())
