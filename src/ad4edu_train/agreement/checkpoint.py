"""What base and checkpoint say of test pairs: log-probs of both sides, under the right prompt and under another moment's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ad4edu_train.agreement.controls import Values, shuffled_prompts
from ad4edu_train.config import EvaluateConfig
from ad4edu_train.data.corpus import Corpus
from ad4edu_train.data.rows import HumanPair
from ad4edu_train.data.views import Prompts
from ad4edu_train.errors import DataError, UserError
from ad4edu_train.policy.chat import Chat, Rendered, RenderError
from ad4edu_train.policy.load import lay_adapter, load_base, load_tokenizer, public_name
from ad4edu_train.policy.log_probs import LogProb, score_all
from ad4edu_train.policy.vision import load_vision

Sides = dict[str, tuple[Rendered, Rendered]]
Scores = dict[Rendered, LogProb]


class PairScorer:
    """Renders the test pairs once, and asks models for the log-probs of every distinct prompt and AD."""

    def __init__(self, config: EvaluateConfig, corpus: Corpus) -> None:
        self.config = config
        self.pairs = corpus.test
        self.prompts = Prompts(config.data.prompt_view, corpus.prompts)
        frames = self.prompts.keyframes(corpus.test)
        self.vision = None
        if config.data.prompt_view == "keyframe":
            keyframes = corpus.keyframes()
            keyframes.check(frames)
            self.vision = load_vision(config.model, keyframes, config.data.max_pixels)
        self.chat = Chat(
            load_tokenizer(config.model),
            thinking=config.model.thinking,
            prefix_mismatch=config.data.prefix_mismatch,
            vision=self.vision,
        )
        self.right = self._render({pair.pair_id: pair for pair in corpus.test})
        self.shuffled = self._render(shuffled_prompts(corpus.test, config.seed))

    @property
    def distinct_prompts(self) -> int:
        """Distinct prompts that each model runs."""
        return len({item.prompt for item in self._distinct()})

    def base(self, tick: Callable[[int], object]) -> Scores:
        return self._score(load_base(self.config.model).eval(), tick)

    def adapter(self, folder: Path, tick: Callable[[int], object]) -> Scores:
        """Scores of the base with the adapter of a folder laid over it."""
        return self._score(lay_adapter(load_base(self.config.model), folder), tick)

    def _score(self, model: Any, tick: Callable[[int], object]) -> Scores:
        return score_all(model, self._distinct(), tick, vision=self.vision)

    def _distinct(self) -> list[Rendered]:
        # A moment's own ADs and those that borrow its prompt share one run of the prompt.
        return [item for sides in (self.right, self.shuffled) for pair in sides.values() for item in pair]

    def _render(self, asked_under: dict[str, HumanPair]) -> Sides:
        sides: Sides = {}
        for pair in self.pairs:
            if pair.pair_id in asked_under:
                try:
                    messages = self.prompts.of(asked_under[pair.pair_id])
                    sides[pair.pair_id] = (
                        self.chat.render(messages, pair.first.ad),
                        self.chat.render(messages, pair.second.ad),
                    )
                except RenderError as error:
                    raise DataError(f"test_human, pair_id {pair.pair_id} cannot be scored: {error}") from None
        return sides


def log_prob_preference(scores: Scores, sides: Sides, *, per_token: bool) -> Values:
    """log p(option_a) - log p(option_b), in nats; per token where asked."""

    def value(item: Rendered) -> float:
        return scores[item].per_token if per_token else scores[item].total

    return {pair_id: value(a) - value(b) for pair_id, (a, b) in sides.items()}


def implicit_reward(policy: Scores, reference: Scores, sides: Sides) -> Values:
    """Difference of the implicit rewards over beta (Rafailov et al. 2023, eq. 5; the partition function cancels), in nats."""

    def reward(item: Rendered) -> float:
        return policy[item].total - reference[item].total

    return {pair_id: reward(a) - reward(b) for pair_id, (a, b) in sides.items()}


def adapter_of(checkpoint: Path) -> Path:
    """The adapter folder of a run folder, of a checkpoint within one, or of a plain PEFT folder."""
    for folder in (checkpoint / "adapter", checkpoint):
        if (folder / "adapter_model.safetensors").is_file():
            return folder
    raise UserError(
        f"{checkpoint} holds no adapter. Give a run folder that has finished (with adapter/), one of its checkpoints, or a PEFT folder."
    )


def reference_of(checkpoint: Path) -> Path | None:
    """The frozen adapter that a run had as its reference (ref/ of its run folder); None where the reference is the base."""
    for folder in (checkpoint, checkpoint.parent.parent):
        if (folder / "ref" / "adapter_model.safetensors").is_file():
            return folder / "ref"
    return None


def refuse_other_base(record: dict, config: EvaluateConfig, checkpoint: Path) -> None:
    """The reference of a checkpoint is the base it was trained on; another one gives rewards without meaning."""
    name = public_name(config.model.path)
    if record and record.get("model") != name:
        raise UserError(
            f"{checkpoint} was trained on {record.get('model')}, but model.path is {name}: its reward is relative to its own base. "
            "Give the same model= and model.path= as in training."
        )
