"""Proof before training that the keyframes reach the model: a run that lost them would train on text alone, and its loss would fall."""

from typing import Any

import torch

from ad4edu_train.errors import UserError
from ad4edu_train.policy.moment_tree import score_trees, trees_of
from ad4edu_train.policy.tree_layout import IGNORED
from ad4edu_train.policy.vision import IMAGE_KEYS
from ad4edu_train.training.batches import PairCollator


def prove_pixels(model: Any, collator: PairCollator) -> None:
    """Run the first pair's batch as it will train, and with its images inverted: what the model says must differ.

    Raises UserError when the batch lacks images that the pair has, or when they change nothing.
    """
    item = collator.pairs[0]
    batch = {name: tensor.to(model.device) for name, tensor in collator([{"index": 0}]).items()}
    given, wanted = len(batch.get("image_grid_thw", ())), len(item.first.keyframes) * (1 if collator.tree else 2)
    if given != wanted:
        raise UserError(f"pair_id {item.pair.pair_id}: its batch holds {given} images, {wanted} are due. Nothing was trained.")
    training = model.training
    model.eval()
    with torch.no_grad():
        seen = _says(model, batch)
        inverted = _says(model, batch | {"pixel_values": -batch["pixel_values"]})
    model.train(training)
    if torch.equal(seen, inverted):
        raise UserError(
            f"pair_id {item.pair.pair_id}: the model says the same of its keyframes and of their negatives, so it does not see them. "
            "Nothing was trained. Is model.path a vision-language model whose vision tower was loaded?"
        )


def _says(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    if "moments" in batch:
        labels = batch["input_ids"].masked_fill(batch["completion_mask"] == 0, IGNORED)
        trees, _ = trees_of(batch["input_ids"], labels, batch["moments"])
        found = score_trees(model, trees, {key: batch[key] for key in IMAGE_KEYS})
        return torch.cat([values for tree in found for values in tree])
    inputs = {name: batch[name] for name in batch if name not in ("completion_mask", "ref_chosen_logps", "ref_rejected_logps")}
    return model(**inputs, use_cache=False).logits[:, -1]
