"""Proof before training that the keyframes reach the model: a run that lost them would train on text alone, and its loss would fall."""

from typing import Any

import torch

from ad4edu_train.errors import UserError
from ad4edu_train.training.batches import PairCollator


def prove_pixels(model: Any, collator: PairCollator) -> None:
    """Run the first pair's batch as TRL will, and with its images inverted: the logits must differ.

    Raises UserError when the batch lacks images that the pair has, or when they change nothing.
    """
    item = collator.pairs[0]
    batch = {name: tensor.to(model.device) for name, tensor in collator([{"index": 0}]).items()}
    given, wanted = len(batch.get("image_grid_thw", ())), 2 * len(item.first.keyframes)
    if given != wanted:
        raise UserError(f"pair_id {item.pair.pair_id}: its batch holds {given} images, {wanted} are due. Nothing was trained.")
    inputs = {name: batch[name] for name in batch if name not in ("completion_mask", "ref_chosen_logps", "ref_rejected_logps")}
    training = model.training
    model.eval()
    with torch.no_grad():
        seen = model(**inputs, use_cache=False).logits[:, -1]
        inverted = model(**inputs | {"pixel_values": -inputs["pixel_values"]}, use_cache=False).logits[:, -1]
    model.train(training)
    if torch.equal(seen, inverted):
        raise UserError(
            f"pair_id {item.pair.pair_id}: the model says the same of its keyframes and of their negatives, so it does not see them. "
            "Nothing was trained. Is model.path a vision-language model whose vision tower was loaded?"
        )
