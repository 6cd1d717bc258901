"""What is proved before the first step and measured at later ones: layout, pixels, reference, validation pair by pair."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from ad4edu_train.config import TrainConfig
from ad4edu_train.policy import tree_attention
from ad4edu_train.policy.chat import Rendered
from ad4edu_train.policy.log_probs import LogProb
from ad4edu_train.policy.score_cache import ScoreCache, weights_identity
from ad4edu_train.policy.vision import Vision
from ad4edu_train.training import processes, reference
from ad4edu_train.training import validation as per_pair
from ad4edu_train.training.layout_check import check_layout
from ad4edu_train.training.pixels import prove_pixels
from ad4edu_train.training.preflight import RenderedPair
from ad4edu_train.training.run_folder import RunFolder
from ad4edu_train.training.tracking import Tracking
from ad4edu_train.training.trainer import PairTrainer
from ad4edu_train.writing import write_private_rows

PROOF_PAIRS = 4


class Watch:
    """Proofs and validation of one run. The reference is scored once; validation rows are kept in validation.jsonl."""

    def __init__(
        self,
        config: TrainConfig,
        vision: Vision | None,
        trainer: PairTrainer,
        folder: RunFolder,
        pairs: list[RenderedPair],
        tracking: Tracking,
        *,
        resumed: bool,
    ) -> None:
        self.config = config
        self.vision = vision
        self.trainer = trainer
        self.folder = folder
        self.pairs = pairs
        self.tracking = tracking
        self.resumed = resumed
        self.reference: dict[Rendered, LogProb] = {}
        self.last: int | None = None

    def begin(self) -> None:
        """The proofs, and the reference log-probs; the model is placed and sharded as it will train."""
        training, settings = self.trainer.pairs, self.config.trainer
        with self.trainer.accelerator.autocast():
            if self.vision:
                prove_pixels(self.trainer.model, self.trainer.collator)
            if settings.layout == "moment_tree" and settings.layout_check:
                first = list(self.trainer._get_train_sampler())
                result = check_layout(self.trainer.model, self.trainer.collator, first)
                if not self.resumed:
                    self.folder.update(layout_check=vars(result))
            beforehand = training if settings.precompute_reference else []
            proof = [] if self.pairs else training[:PROOF_PAIRS]
            self.reference = self._reference([*beforehand, *self.pairs, *proof])
        if beforehand:
            self.trainer.collator.reference = self.reference
        if self.resumed:
            # The closing validation of a run that was killed after it is not made twice.
            self.last = max((row["step"] for row in self.folder.rows("metrics.jsonl") if "validation" in row), default=None)
            return
        rows = self._rows(self.pairs or proof, 0)
        reference.prove([row.margin for row in rows], self.config)
        if self.pairs:
            self._keep(rows, 0)

    def validate(self, step: int) -> None:
        self._keep(self._rows(self.pairs, step), step)

    def end(self, step: int) -> None:
        if self.pairs and self.last != step:
            self.validate(step)

    def _reference(self, pairs: list[RenderedPair]) -> dict[Rendered, LogProb]:
        folder = Path(self.config.trainer.output_root) / ".reference"
        cache = ScoreCache(
            folder, self._context(), self.vision.sha256 if self.vision else _no_keyframes, ranks=processes.ranks()
        )

        def score(missing: list[Rendered]) -> dict[Rendered, LogProb]:
            with _bar("reference", missing) as bar:
                return per_pair.reference_scores(self.trainer.model, missing, bar.update, vision=self.vision)

        return cache.complete(per_pair.sides_of(pairs), score, main=processes.is_main())

    def _context(self) -> dict[str, Any]:
        """Everything that changes a reference log-prob, besides the tokens and images themselves."""
        model = self.config.model
        return {
            "weights": weights_identity(model.path, model.revision),
            "adapters": self.folder.record()["adapters_sha256"],
            "reference": self.config.dpo.reference,
            "model": model.model_dump(exclude={"path", "revision", "adapter", "thinking"}),
            "autocast": self.config.trainer.precision,
            "layout": "tree" if tree_attention.enabled(self.trainer.model) else "cache",
            "device": self.trainer.accelerator.device.type,
            "distributed": self.config.distributed.kind,
            "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
            "images": [self.config.data.max_pixels, type(self.vision.processor).__name__] if self.vision else None,
        }

    def _rows(self, pairs: list[RenderedPair], step: int) -> list[per_pair.ValidationRow]:
        with self.trainer.accelerator.autocast(), _bar("validation", per_pair.sides_of(pairs)) as bar:
            return per_pair.validate(
                self.trainer.model,
                pairs,
                self.reference,
                beta=self.config.dpo.beta,
                step=step,
                tick=bar.update,
                vision=self.vision,
            )

    def _keep(self, rows: list[per_pair.ValidationRow], step: int) -> None:
        self.last = step
        if processes.is_main():
            kept = [row for row in self.folder.rows("validation.jsonl") if row["step"] < step]
            write_private_rows(self.folder.path / "validation.jsonl", [*kept, *per_pair.as_rows(rows)])
        summaries = {name: vars(cell) for name, cell in per_pair.summarise(rows).items()}
        self.folder.append_metrics({"step": step, "validation": summaries})
        self.tracking.validated(self.trainer.state, summaries)


def _bar(what: str, sides: list[Rendered]) -> Any:
    prompts = len({side.prompt for side in sides})
    return tqdm(total=prompts, unit="prompt", desc=what, disable=not processes.is_main(), leave=False)


def _no_keyframes(name: str) -> str:
    raise ValueError(f"{name}: a keyframe in a run on text")
