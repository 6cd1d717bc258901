"""The moment tree is the same computation as stock TRL: losses, gradients, metrics."""

from types import SimpleNamespace

import pytest
import torch

from ad4edu_train.errors import ConfigError
from ad4edu_train.policy.moment_tree import IGNORED, pack, refuse_inexact, unpack
from ad4edu_train.training.batches import MomentSampler

pytestmark = pytest.mark.slow

STOCK = ("trainer.layout=stock", "trainer.precompute_reference=false")
LOSSES = ["[sigmoid]", "[ipo]", "[hinge]", "[sppo_hard]", "[apo_zero]", "[sigmoid,bco_pair,sft]"]


@pytest.mark.parametrize("checkpointing", ["true", "false"])
@pytest.mark.parametrize("loss", LOSSES)
def test_loss_and_gradients_equal_stock_trl(trainer, loss_and_gradients, rendered, loss, checkpointing):
    options = (f"dpo.loss={loss}", f"trainer.gradient_checkpointing={checkpointing}")
    stock_loss, stock = loss_and_gradients(trainer(rendered, *options, *STOCK), rendered)
    tree_loss, tree = loss_and_gradients(trainer(rendered, *options), rendered)
    assert tree_loss == pytest.approx(stock_loss, rel=1e-5)
    assert tree.keys() == stock.keys()
    assert all(gradient.abs().sum() > 0 for gradient in stock.values())
    difference = sum(float((tree[name] - stock[name]).pow(2).sum()) for name in stock) ** 0.5
    assert difference / sum(float(stock[name].pow(2).sum()) for name in stock) ** 0.5 < 2e-5


def test_metrics_equal_stock_trl(trainer, loss_and_gradients, rendered):
    metrics = []
    for options in ((), STOCK):
        made = trainer(rendered, *options)
        loss_and_gradients(made, rendered)
        metrics.append({name: values[-1] for name, values in made._metrics["train"].items()})
    tree, stock = metrics
    for name in ("rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected", "entropy", "mean_token_accuracy"):
        assert tree[name] == pytest.approx(stock[name], rel=1e-4, abs=1e-4), name
    # Every prompt and every distinct AD once; the prompt's last token stands at the head of each branch in its place.
    ads = {side for item in rendered for side in (item.first, item.second)}
    prompts = {item.first.prompt_ids for item in rendered}
    assert tree["num_tokens"] == sum(len(p) - 1 for p in prompts) + sum(len(ad.completion_ids) for ad in ads)
    assert stock["num_tokens"] == sum(
        len(side.prompt_ids + side.completion_ids) for item in rendered for side in (item.first, item.second)
    )


@pytest.mark.parametrize("break_it", ["position", "leak"])
def test_the_comparison_notices_a_wrong_position_and_a_leaking_branch(
    trainer, loss_and_gradients, rendered, monkeypatch, break_it
):
    stock_loss, _ = loss_and_gradients(trainer(rendered, *STOCK), rendered)
    from ad4edu_train.policy import moment_tree

    original = moment_tree.pack

    def broken(*arguments):
        packed = original(*arguments)
        if break_it == "position":
            packed.position_ids[packed.shift_labels != IGNORED] += 1
        else:
            packed.attention_mask[:] = torch.ones_like(packed.attention_mask).tril()
        return packed

    monkeypatch.setattr(moment_tree, "pack", broken)
    wrong_loss, _ = loss_and_gradients(trainer(rendered), rendered)
    assert wrong_loss != pytest.approx(stock_loss, rel=1e-5)


class Pair:
    """Stands for a rendered pair: the sampler reads its prompt alone."""

    def __init__(self, prompt: int) -> None:
        self.first = SimpleNamespace(prompt=prompt)


def test_every_distinct_ad_is_one_branch_and_values_come_back_where_they_belong():
    # Two pairs on the prompt (1, 2, 3) that share the AD (5, 6), one pair on (1, 2, 4).
    sides = [
        ((1, 2, 3), (5, 6)),
        ((1, 2, 3), (5, 6)),
        ((1, 2, 4), (7,)),
        ((1, 2, 3), (8, 9, 9)),
        ((1, 2, 3), (7,)),
        ((1, 2, 4), (5,)),
    ]
    input_ids = torch.zeros(6, 6, dtype=torch.long)
    labels = torch.full((6, 6), IGNORED)
    for row, (prompt, completion) in enumerate(sides):
        input_ids[row, : len(prompt + completion)] = torch.tensor(prompt + completion)
        labels[row, len(prompt) : len(prompt + completion)] = torch.tensor(completion)
    packed = pack(input_ids, labels, pad_id=0)
    assert packed.input_ids.tolist() == [[1, 2, 3, 5, 3, 8, 9, 3], [1, 2, 4, 4, 0, 0, 0, 0]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 2, 3, 4, 2], [0, 1, 2, 2, 0, 0, 0, 0]]
    assert packed.tokens == 12
    assert packed.shift_labels.tolist()[0] == [IGNORED, IGNORED, 5, 6, 8, 9, 9, 7]
    mask = packed.attention_mask[0, 0]
    assert mask[4].nonzero().flatten().tolist() == [0, 1, 4]
    assert mask[6].nonzero().flatten().tolist() == [0, 1, 4, 5, 6]
    values = unpack(packed.shift_labels.float(), packed.branches, (6, 5))
    for row, (prompt, completion) in enumerate(sides):
        expected = torch.zeros(5)
        expected[len(prompt) - 1 : len(prompt) - 1 + len(completion)] = torch.tensor(completion, dtype=torch.float)
        assert torch.equal(values[row], expected)


@pytest.mark.parametrize("seed", range(4))
def test_sampler_gives_every_pair_once_and_splits_only_moments_that_fit_nowhere(seed):
    sizes = [1, 2, 3, 5, 7, 8, 11, 2, 4, 1]
    pairs = [Pair(prompt) for prompt, size in enumerate(sizes) for _ in range(size)]
    sampler = MomentSampler(pairs, batch_size=8, seed=seed)
    order = list(sampler)
    assert sorted(order) == list(range(len(pairs)))
    assert len(sampler) == len(pairs)
    prompts = [pairs[index].first.prompt for index in order]
    for end in range(8, len(order), 8):
        if prompts[end - 1] == prompts[end]:
            cut = prompts[end]
            room = sum(prompt == cut for prompt in prompts[end - 8 : end])
            later = set(prompts[end:]) - set(prompts[:end])
            assert all(prompts.count(prompt) > room for prompt in later), "a waiting moment would have fitted"
    assert list(MomentSampler(pairs, batch_size=8, seed=seed)) == order
    sampler.set_epoch(1)
    assert list(sampler) != order


def test_architectures_that_a_packed_row_would_change_are_refused():
    from transformers import AutoConfig, MistralConfig

    with pytest.raises(ConfigError, match="sliding-window"):
        refuse_inexact(MistralConfig(sliding_window=64, attn_implementation="sdpa"))
    config = AutoConfig.for_model("llama", attn_implementation="flash_attention_2")
    with pytest.raises(ConfigError, match="other than SDPA"):
        refuse_inexact(config)
