"""What the moment tree saves against TRL on this machine: CPU-seconds a pair, peak memory, exactness; all in one run.

    python benchmarks/dpo_step.py            SmolLM2-135M, float32, synthetic corpus at the card's pairs a moment; about ten minutes
    python benchmarks/dpo_step.py --quick    one round, two pairs

Writes benchmarks/out/dpo_step.json. Every method goes through DPOTrainer's own loss path with the same pairs and adapter. Rounds are
interleaved, medians taken; one thread, so that CPU time is work and not waiting.
"""

import os

os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

OUT = Path(__file__).parent / "out" / "dpo_step.json"
BATCH = 4
# name -> (layout, reference beforehand, TRL's head as it is on CPUs, which scores every position)
METHODS = {
    "stock TRL": ("stock", False, True),
    "TRL, cached reference, head on completions only": ("stock", True, False),
    "moment tree": ("moment_tree", True, False),
}


@dataclass(frozen=True)
class Method:
    """One way to run a batch. The trainer is built when first asked for."""

    name: str
    pairs: list[Any]
    work: Path

    @cached_property
    def trainer(self) -> Any:
        import torch

        from ad4edu_train.config import TrainConfig, parse
        from ad4edu_train.demo.resolve import resolve
        from ad4edu_train.policy.load import load_base, load_tokenizer
        from ad4edu_train.training.checkpoints import Checkpoints
        from ad4edu_train.training.lora import lora_config
        from ad4edu_train.training.trainer import PairTrainer, trl_arguments

        layout, beforehand, _ = METHODS[self.name]
        config = resolve(parse(TrainConfig, _settings(layout, beforehand, str(self.work))))
        base = load_base(config.model)
        trainer = PairTrainer(
            model=base,
            args=trl_arguments(config, self.work, steps=None, layers=[], use_cpu=True),
            pairs=self.pairs,
            layout=layout,
            checkpoints=Checkpoints(self.work, 1),
            processing_class=load_tokenizer(config.model),
            peft_config=lora_config(base, config.lora),
        )
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for name, parameter in trainer.model.named_parameters():
                if "lora_B" in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.01)
        return trainer

    def reference(self) -> float:
        """CPU-seconds to score the reference of all pairs."""
        from ad4edu_train.training.validation import reference_scores, sides_of

        started = time.process_time()
        self.trainer.collator.reference = reference_scores(self.trainer.model, sides_of(self.pairs))
        return time.process_time() - started

    def step(self, indices: list[int]) -> tuple[float, float]:
        """(CPU-seconds, loss) of forward and backward of one batch."""
        import trl.trainer.utils

        whole_head = METHODS[self.name][2]
        trl.trainer.utils._use_triton = lambda device: not whole_head
        model = self.trainer.model
        model.train()
        model.zero_grad()
        batch = self.trainer.collator([{"index": index} for index in indices])
        started = time.process_time()
        loss = self.trainer.compute_loss(model, batch)
        loss.backward()
        return time.process_time() - started, loss.item()

    def optimise(self) -> float:
        import torch

        trained = [parameter for parameter in self.trainer.model.parameters() if parameter.requires_grad]
        optimiser = torch.optim.AdamW(trained, lr=0.0)
        optimiser.step()
        started = time.process_time()
        optimiser.step()
        return time.process_time() - started

    def gradients(self) -> Any:
        import torch

        return torch.cat([p.grad.flatten() for p in self.trainer.model.parameters() if p.grad is not None])


def _settings(layout: str, beforehand: bool, work: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir

    from ad4edu_train.config import to_plain

    with initialize_config_dir(str(Path(__file__).parent.parent / "configs"), version_base="1.3"):
        overrides = [f"trainer.layout={layout}", f"trainer.precompute_reference={beforehand}", f"trainer.output_root={work}"]
        return to_plain(compose("train", overrides=[*overrides, f"trainer.batch_size={BATCH}"]))


def corpus_pairs() -> list[Any]:
    """Rendered training pairs of the synthetic corpus."""
    from ad4edu_train.config import Model
    from ad4edu_train.data.files import read_records
    from ad4edu_train.data.rows import preference_pair
    from ad4edu_train.data.views import Prompts
    from ad4edu_train.demo.model import unpack_model
    from ad4edu_train.demo.resolve import demo_corpus
    from ad4edu_train.policy.chat import Chat
    from ad4edu_train.policy.load import load_tokenizer
    from ad4edu_train.training.preflight import render_pairs

    records = read_records(next(demo_corpus(80, 0).glob("data/train_prefs*")))
    pairs = [preference_pair(record.values) for record in records]
    model = Model(
        path=str(unpack_model()), revision=None, adapter=None, dtype="float32", attention="sdpa", quantization="none",
        quantization_storage="uint8", thinking=False,
    )  # fmt: skip
    chat = Chat(load_tokenizer(model), thinking=False)
    return render_pairs(pairs, Prompts("text", []), chat, max_tokens=4096, too_long="refuse").pairs


def batches_of(pairs: list[Any], count: int, size: int) -> list[list[int]]:
    """The sampler's first batches, as a run would draw them."""
    from ad4edu_train.training.batches import MomentSampler

    order = list(MomentSampler(pairs, size, 0))
    return [order[start : start + size] for start in range(0, count * size, size)]


def peak_of(name: str) -> int:
    """Bytes by which one step raises the high-water mark above that after loading, in a process of its own with plain malloc."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, __file__, "--peak", name], env=environment, capture_output=True, text=True, check=True
    )
    return int(done.stdout.strip().splitlines()[-1])


def print_peak(name: str) -> None:
    pairs = corpus_pairs()
    [batch] = batches_of(pairs, 1, BATCH)
    with tempfile.TemporaryDirectory() as work:
        method = Method(name, [pairs[index] for index in batch], Path(work))
        trainer = method.trainer
        if trainer.precompute_ref_logps:
            method.reference()
        # Loading has a high-water mark of its own; the kernel forgets it on request (proc(5), clear_refs).
        Path("/proc/self/clear_refs").write_text("5")
        before = _status_bytes("VmRSS")
        method.step(list(range(BATCH)))
        print(_status_bytes("VmHWM") - before)


def _status_bytes(name: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def trie_saving(pairs: list[Any]) -> float:
    """Share of packed tokens that common beginnings of a moment's ADs would save beyond the tree."""
    from ad4edu_train.policy.tree_layout import Tree, tokens_of

    sides: dict[Any, set[tuple[int, ...]]] = {}
    for item in pairs:
        for side in (item.first, item.second):
            sides.setdefault(side.prompt, set()).add(side.completion_ids)
    tree = sum(tokens_of(Tree(prompt.ids, tuple(found))) for prompt, found in sides.items())
    prefixes = sum(
        len({ids[:end] for ids in found for end in range(1, len(ids) + 1)}) + len(prompt.ids) - 1
        for prompt, found in sides.items()
    )
    return 1 - prefixes / tree


def measure(rounds: int, size: int) -> dict[str, Any]:
    import torch

    pairs = corpus_pairs()
    batches = batches_of(pairs, rounds, size)
    used = [pairs[index] for batch in batches for index in batch]
    seconds: dict[str, list[float]] = {name: [] for name in METHODS}
    losses: dict[str, list[float]] = {name: [] for name in METHODS}
    gradients: dict[str, Any] = {}
    extra: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as work:
        methods = [Method(name, used, Path(work)) for name in METHODS]
        for method in methods:
            beforehand = METHODS[method.name][1]
            extra[method.name] = {"reference": method.reference() / len(used) if beforehand else 0.0}
        for turn in range(rounds):
            for method in methods:
                cost, loss = method.step(list(range(turn * size, (turn + 1) * size)))
                seconds[method.name].append(cost / size)
                losses[method.name].append(loss)
                gradients[method.name] = method.gradients()
            print(
                f"round {turn + 1}: " + ", ".join(f"{name} {seconds[name][-1]:.2f} CPU-s a pair" for name in METHODS),
                flush=True,
            )
        for method in methods:
            extra[method.name]["optimiser"] = method.optimise() / size
    cost = {name: median(values) for name, values in seconds.items()}
    epoch = {name: cost[name] + sum(extra[name].values()) for name in METHODS}
    peak = {name: peak_of(name) for name in METHODS}
    stock, cached, tree = METHODS
    return {
        "setting": {
            "model": "SmolLM2-135M-Instruct, float32, LoRA r=16, one thread",
            "data": "synthetic corpus",
            "pairs": len(used),
            "pairs_a_batch": size,
            "moments": len({item.first.prompt for item in used}),
            "prompt_tokens": round(sum(len(item.first.prompt_ids) for item in used) / len(used)),
            "ad_tokens": round(
                sum(len(s.completion_ids) for item in used for s in (item.first, item.second)) / (2 * len(used))
            ),
            "matmul_gflops": matmul_peak(),
        },
        "cpu_seconds_a_pair": cost,
        "epoch_cpu_seconds_a_pair": epoch,
        "peak_bytes": peak,
        "ratios": {
            "tree_vs_stock": cost[stock] / cost[tree],
            "tree_vs_cached_reference": cost[cached] / cost[tree],
            "epoch_vs_stock": epoch[stock] / epoch[tree],
            "peak_memory": peak[tree] / peak[stock],
        },
        "exactness": {
            "loss": max(abs(one - other) for one, other in zip(losses[stock], losses[tree], strict=True)),
            "gradient": float(torch.norm(gradients[tree] - gradients[stock]) / torch.norm(gradients[stock])),
        },
        "trie_saving": trie_saving(pairs),
    }


def matmul_peak() -> float:
    """GFLOP/s of a large float32 product here, the machine's own measure."""
    import torch

    one, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = 0.0
    for _ in range(5):
        started = time.process_time()
        one @ other
        best = max(best, 2 * 1024**3 / (time.process_time() - started) / 1e9)
    return round(best, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of two pairs: does it run?")
    parser.add_argument("--peak", choices=METHODS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak:
        return print_peak(arguments.peak)
    result = measure(*((1, 2) if arguments.quick else (4, BATCH)))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({key: result[key] for key in ("ratios", "exactness", "trie_saving")}, indent=2))
    return None


if __name__ == "__main__":
    main()
