"""The moment tree is the same computation as stock TRL: losses, gradients, metrics."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from ad4edu_train.errors import ConfigError
from ad4edu_train.policy import moment_tree, tree_attention
from ad4edu_train.policy.moment_tree import reasons_against, require, trees_of
from ad4edu_train.policy.tree_layout import IGNORED, Tree, lay, tokens_of
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
    lay_right = moment_tree.lay

    def broken(*arguments):
        packed = lay_right(*arguments)
        if break_it == "position":
            packed.position_ids[packed.shift_labels != IGNORED] += 1
            return packed
        # One branch per tree that holds all of them: each sees those before it.
        spans = []
        for span in packed.spans:
            whole = span.index[span.valid].sort().values[None]
            spans.append(replace(span, index=whole, valid=torch.ones_like(whole, dtype=torch.bool)))
        return replace(packed, spans=tuple(spans))

    monkeypatch.setattr(moment_tree, "lay", broken)
    wrong_loss, _ = loss_and_gradients(trainer(rendered), rendered)
    assert wrong_loss != pytest.approx(stock_loss, rel=1e-5)


def test_a_reference_forward_between_forward_and_backward_changes_no_gradient(trainer, rendered):
    """The layout is the forward's own: a global would hold another batch's when checkpointing runs the forward again."""
    from ad4edu_train.training.validation import reference_scores, sides_of

    gradients = []
    for between in (False, True):
        made = trainer(rendered, "trainer.gradient_checkpointing=true")
        made.collator.reference = reference_scores(made.model, sides_of(rendered))
        made.model.gradient_checkpointing_enable()
        made.model.train()
        loss = made.compute_loss(made.model, made.data_collator([{"index": index} for index in range(4)]))
        if between:
            other = made.data_collator([{"index": index} for index in range(4, 8)])
            with torch.no_grad():
                made.compute_loss(made.model, other)
        loss.backward()
        gradients.append({name: p.grad for name, p in made.model.named_parameters() if p.grad is not None})
    assert all(torch.equal(gradient, gradients[1][name]) for name, gradient in gradients[0].items())


def dense(packed) -> torch.Tensor:
    """The mask of a packed row written out: the prompt causally, each branch the prompt and itself. (tokens, tokens)."""
    mask = torch.zeros(packed.tokens, packed.tokens, dtype=torch.bool)
    for span, starts in zip(packed.spans, packed.starts, strict=True):
        prompt = range(span.start, span.start + span.prompt)
        for row in prompt:
            mask[row, span.start : row + 1] = True
        for number, start in enumerate(starts):
            for row in span.index[number][span.valid[number]].tolist():
                mask[row, span.start : span.start + span.prompt] = True
                mask[row, start : row + 1] = True
    return mask


def test_attention_is_that_of_the_dense_mask_values_and_gradients():
    generator = torch.Generator().manual_seed(0)
    trees = [Tree(tuple(range(9)), ((1, 2, 3), (4,), (5, 6))), Tree(tuple(range(5)), ((1, 2),)), Tree((7, 8), ((1,), (2, 3)))]
    packed = lay(trees, [torch.arange(len(tree.prompt))[None] for tree in trees], torch.device("cpu"))
    found = []
    for oracle in (False, True):
        query = torch.randn(1, 4, packed.tokens, 8, generator=generator.manual_seed(1), requires_grad=True)
        key, value = (torch.randn(1, 2, packed.tokens, 8, generator=generator, requires_grad=True) for _ in range(2))
        module = SimpleNamespace(num_key_value_groups=2, is_causal=True)
        if oracle:
            mask, layout = dense(packed)[None, None], None
        else:
            mask, layout = torch.ones(1, 1, 1, 1, dtype=torch.bool), packed.spans
        out, _ = tree_attention.tree_attention(module, query, key, value, mask, scaling=0.3, moment_layout=layout)
        (out * torch.arange(out.numel()).view_as(out).sin()).sum().backward()
        found.append((out, query.grad, key.grad, value.grad))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_without_the_keyword_it_is_sdpa_with_the_padding_mask(tiny_run, tiny_model):
    from transformers import AutoModelForCausalLM

    from ad4edu_train.policy.load import load_base

    ours = load_base(tiny_run().model).eval()
    assert tree_attention.enabled(ours)
    theirs = AutoModelForCausalLM.from_pretrained(tiny_model, attn_implementation="sdpa").eval()
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.no_grad():
        for padding in (mask, mask.flip(1)):
            assert torch.equal(
                ours(input_ids=ids, attention_mask=padding).logits, theirs(input_ids=ids, attention_mask=padding).logits
            )


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
    trees, served = trees_of(input_ids, labels, torch.tensor([0, 0, 1, 0, 0, 1]))
    packed = lay(trees, [torch.arange(3)[None]] * 2, torch.device("cpu"))
    assert packed.input_ids.tolist() == [[1, 2, 3, 5, 3, 8, 9, 3, 1, 2, 4, 4]]
    assert packed.position_ids.tolist() == [[0, 1, 2, 3, 2, 3, 4, 2, 0, 1, 2, 2]]
    assert packed.tokens == 12 == sum(map(tokens_of, trees))
    assert packed.shift_labels.tolist()[0] == [IGNORED, IGNORED, 5, 6, 8, 9, 9, 7, IGNORED, IGNORED, 7, 5]
    values = moment_tree._to_pairs(packed.shift_labels.float(), packed, trees, served, (6, 5))
    for row, (prompt, completion) in enumerate(sides):
        expected = torch.zeros(5)
        expected[len(prompt) - 1 : len(prompt) - 1 + len(completion)] = torch.tensor(completion, dtype=torch.float)
        assert torch.equal(values[row], expected)


def test_equal_tokens_under_different_images_are_different_prompts():
    input_ids = torch.tensor([[1, 2, 3, 5], [1, 2, 3, 5]])
    labels = torch.tensor([[IGNORED, IGNORED, IGNORED, 5]] * 2)
    trees, _ = trees_of(input_ids, labels, torch.tensor([0, 1]))
    assert len(trees) == 2


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


def test_architectures_that_a_packed_row_would_change_are_refused(tiny_run, tiny_model):
    from transformers import AutoModelForCausalLM, Gemma2Config, Gemma2ForCausalLM, MistralConfig, MistralForCausalLM

    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 64}
    mistral = MistralForCausalLM(MistralConfig(**small, num_key_value_heads=2, sliding_window=64))
    with pytest.raises(ConfigError, match=r"trainer\.layout='moment_tree'.*sliding-window"):
        require(mistral)
    gemma = Gemma2ForCausalLM(Gemma2Config(**small, num_key_value_heads=2, head_dim=16))
    assert "capped attention scores" in reasons_against(gemma)
    eager = AutoModelForCausalLM.from_pretrained(tiny_model, attn_implementation="eager")
    assert reasons_against(eager) == ["attention other than SDPA"]
