"""The check of the first batch: passes for the tree, and stops a position off by one, a leaked branch and swapped images."""

from dataclasses import replace

import pytest
import torch

from ad4edu_train.errors import ConfigError, UserError
from ad4edu_train.policy import moment_tree
from ad4edu_train.policy.load import load_base
from ad4edu_train.training.batches import MomentSampler, PairCollator, plan_batches
from ad4edu_train.training.layout_check import check_layout
from ad4edu_train.training.run import train

pytestmark = pytest.mark.slow
INDICES = [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_tree_is_within_rounding_of_stock_rows(tiny_run, rendered, dtype, capsys):
    options = (f"model.dtype={dtype}", "trainer.layout=moment_tree")
    model = load_base(tiny_run(*options).model)
    result = check_layout(model, PairCollator(rendered, 0, tree=True), INDICES)
    assert result.passed
    assert 0 < result.noise < (1e-3 if dtype == "float32" else 1.0)
    assert "Layout check on 2 pairs" in capsys.readouterr().out


@pytest.mark.parametrize("broken", ["position", "leak", "images"])
def test_faults_are_caught(seen, seen_pairs, monkeypatch, broken):
    config, chat, _, _ = seen
    model = load_base(config.model)
    collator = PairCollator(seen_pairs, 0, chat.vision, tree=True)
    check_layout(model, collator, INDICES)
    lay, score = moment_tree.lay, moment_tree.score_trees

    def spoiled(*arguments):
        packed = lay(*arguments)
        if broken == "position":
            packed.position_ids[..., packed.shift_labels[0] != moment_tree.IGNORED] += 1
            return packed
        spans = []
        for span in packed.spans:
            whole = span.index[span.valid].sort().values[None]
            spans.append(replace(span, index=whole, valid=torch.ones_like(whole, dtype=torch.bool)))
        return replace(packed, spans=tuple(spans))

    if broken == "images":
        from ad4edu_train.training import layout_check

        monkeypatch.setattr(
            layout_check,
            "score_trees",
            lambda model, trees, images: score(model, trees, images | {"pixel_values": images["pixel_values"].flip(0)}),
        )
    else:
        monkeypatch.setattr(moment_tree, "lay", spoiled)
    with pytest.raises(UserError, match="does not give this model's own numbers"):
        check_layout(model, collator, INDICES)


def test_the_check_stands_in_the_record_and_can_be_left_out(tiny_run, tmp_path):
    record = train(tiny_run()).record()
    assert record["layout_check"]["tree"] <= 3 * record["layout_check"]["noise"]
    assert record["layout"]["name"] == "moment_tree"
    assert record["layout"]["largest_batch_tokens"] > 500
    assert "layout_check" not in train(tiny_run("trainer.layout_check=false", output_root=tmp_path / "off")).record()


def test_plan_counts_tokens_and_split_moments_as_the_sampler_lays_them(rendered):
    plan = plan_batches(rendered, layout="moment_tree", batch_size=2, seed=0, epochs=2)
    largest = split = 0
    for epoch in range(2):
        sampler = MomentSampler(rendered, 2, 0)
        sampler.set_epoch(epoch)
        order = list(sampler)
        batches = [order[start : start + 2] for start in range(0, len(order), 2)]
        for batch in batches:
            sides = {side for index in batch for side in (rendered[index].first, rendered[index].second)}
            prompts = {side.prompt for side in sides}
            largest = max(
                largest, sum(len(prompt.ids) - 1 for prompt in prompts) + sum(len(side.completion_ids) for side in sides)
            )
        where = {}
        for number, batch in enumerate(batches):
            for index in batch:
                where.setdefault(rendered[index].first.prompt, set()).add(number)
        split = max(split, sum(len(numbers) > 1 for numbers in where.values()))
    assert (plan.largest, plan.split_moments) == (largest, split)
    assert split > 0


def test_a_batch_over_the_token_budget_is_refused_before_any_step_with_a_size_that_fits(tiny_run):
    with pytest.raises(ConfigError, match=r"trainer\.batch_size=8: expected about \d+: the largest micro-batch has \d+ tokens"):
        train(tiny_run("trainer.max_batch_tokens=700"))
