"""The moment tree on real vision-language architectures, several images a moment: the numbers of stock TRL."""

import pytest
import torch

from ad4edu_train.policy import moment_tree
from ad4edu_train.policy.load import load_base
from ad4edu_train.policy.log_probs import behind_cache, score_all
from ad4edu_train.training.run import train

pytestmark = pytest.mark.slow
STOCK = ("trainer.layout=stock", "trainer.precompute_reference=false")
TREE = ("trainer.layout=moment_tree", "trainer.precompute_reference=true")


@pytest.fixture
def on_keyframes(trainer, seen, vlm):
    """on_keyframes(pairs, *overrides) -> trainer of which every parameter trains, the vision tower's too."""
    _, chat, _, _ = seen

    def built(pairs, *overrides):
        made = trainer(pairs, f"model.path={vlm}", "data.prompt_view=keyframe", *overrides, vision=chat.vision)
        for parameter in made.model.parameters():
            parameter.requires_grad_(True)
        return made

    return built


@pytest.mark.parametrize("checkpointing", ["true", "false"])
def test_loss_and_all_gradients_vision_included_equal_stock_trl(on_keyframes, loss_and_gradients, seen_pairs, checkpointing):
    option = f"trainer.gradient_checkpointing={checkpointing}"
    stock_loss, stock = loss_and_gradients(on_keyframes(seen_pairs, *STOCK, option), seen_pairs)
    tree_loss, tree = loss_and_gradients(on_keyframes(seen_pairs, *TREE, option), seen_pairs)
    assert tree_loss == pytest.approx(stock_loss, rel=1e-5)
    assert tree.keys() == stock.keys()
    assert sum("visual" in name for name in stock) > 10
    difference = sum(float((tree[name] - stock[name]).pow(2).sum()) for name in stock) ** 0.5
    assert difference / sum(float(stock[name].pow(2).sum()) for name in stock) ** 0.5 < 1e-5


def test_log_probs_are_those_behind_a_cache(seen, seen_pairs):
    config, chat, _, _ = seen
    model = load_base(config.model).eval()
    sides = [side for item in seen_pairs for side in (item.first, item.second)]
    scores = score_all(model, sides, vision=chat.vision)
    with torch.no_grad():
        for side in sides:
            [values] = behind_cache(model, side.prompt, [side.completion_ids], chat.vision)
            assert torch.allclose(torch.tensor(scores[side].values), values, atol=5e-5)


def test_images_come_once_a_moment_and_swapped_ones_are_noticed(on_keyframes, loss_and_gradients, seen_pairs, monkeypatch):
    made = on_keyframes(seen_pairs, *TREE)
    rows = [{"index": index} for index in range(len(seen_pairs))]
    prompts = list(dict.fromkeys(item.first.prompt for item in seen_pairs))
    batch = made.data_collator(rows)
    assert len(batch["image_grid_thw"]) == sum(len(prompt.keyframes) for prompt in prompts)
    right, _ = loss_and_gradients(made, seen_pairs)
    inputs = type(made.collator.vision).inputs
    monkeypatch.setattr(type(made.collator.vision), "inputs", lambda self, names: inputs(self, [*names[1:], names[0]]))
    monkeypatch.setattr(made, "precompute_ref_logps", True)
    reference = made.collator.reference
    made.model.zero_grad()
    made.collator.reference = reference
    swapped = float(made.compute_loss(made.model, made.data_collator(rows)))
    assert abs(swapped - right) > 1e-5


def test_a_run_on_keyframes_in_the_tree_layout_gives_the_losses_of_stock(configured, tmp_path):
    losses = {}
    for layout, live in (("moment_tree", "true"), ("stock", "false")):
        options = (
            f"trainer.layout={layout}",
            f"trainer.precompute_reference={live}",
            "trainer.batch_size=6",
            "trainer.max_steps=3",
        )
        folder = train(configured(*options, "data.max_train_pairs=6", output_root=tmp_path / layout))
        losses[layout] = [row["loss"] for row in folder.rows("metrics.jsonl") if "loss" in row]
    assert losses["moment_tree"] == pytest.approx(losses["stock"], abs=1e-4)
    assert len(losses["stock"]) == 3


def test_a_row_of_images_of_unequal_size_keeps_the_positions_of_each_prompt(seen, seen_pairs):
    """Positions of several prompts in one call are those of each alone."""
    config, chat, _, _ = seen
    model = load_base(config.model)
    prompts = list(dict.fromkeys(item.first.prompt for item in seen_pairs))
    trees = [moment_tree.Tree(prompt.ids, ((1, 2),)) for prompt in prompts]
    together = moment_tree.positions_of(model, trees, chat.vision.inputs([name for p in prompts for name in p.keyframes]))
    for prompt, tree, places in zip(prompts, trees, together, strict=True):
        [alone] = moment_tree.positions_of(model, [tree], chat.vision.inputs(prompt.keyframes))
        assert torch.equal(places, alone)
        assert places.shape == (3, len(prompt.ids))
