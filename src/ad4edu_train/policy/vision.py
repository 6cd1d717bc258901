"""Keyframes as a Qwen-VL model takes them: how many tokens each is, its pixels, and the positions that images shift."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ad4edu_train.config import Model
from ad4edu_train.data.keyframes import Keyframes
from ad4edu_train.errors import ConfigError, UserError
from ad4edu_train.policy.load import not_found, public_name

if TYPE_CHECKING:
    import torch

IMAGE_KEYS = ("pixel_values", "image_grid_thw")


class Vision:
    """Reads keyframes and lays them out as the model's image inputs.

    `processor` is the model's own image processor, held to `max_pixels`: training, agreement and sampling scale alike.
    """

    def __init__(self, processor: Any, keyframes: Keyframes, image_token_id: int) -> None:
        self.processor = processor
        self.keyframes = keyframes
        self.image_token_id = image_token_id
        self._tokens: dict[str, int] = {}
        self._sha256: dict[str, str] = {}

    def tokens(self, name: str) -> int:
        """Tokens of a keyframe in the prompt, from the size in its header. Raises DataError for a file that is none."""
        if name not in self._tokens:
            width, height = self.keyframes.size(name)
            patches = self.processor.get_number_of_image_patches(height, width, {})
            self._tokens[name] = patches // self.processor.merge_size**2
        return self._tokens[name]

    def sha256(self, name: str) -> str:
        """Of a keyframe's file: images under one name may differ between data sets."""
        if name not in self._sha256:
            with self.keyframes.path(name).open("rb") as file:
                self._sha256[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._sha256[name]

    def inputs(self, names: Sequence[str]) -> "dict[str, torch.Tensor]":
        """pixel_values (patches of all images, values of a patch) and image_grid_thw (images, 3), in the order of `names`.

        Each distinct keyframe is decoded and scaled once, however often it is named.
        """
        import torch

        seen: dict[str, Any] = {}
        for name in names:
            if name not in seen:
                seen[name] = self.processor(images=[self.keyframes.read(name)], return_tensors="pt")
        return {key: torch.cat([seen[name][key] for name in names]) for key in IMAGE_KEYS}

    def token_types(self, input_ids: "torch.Tensor") -> "torch.Tensor":
        """1 where a position holds a piece of an image, 0 elsewhere; the shape of `input_ids`."""
        return (input_ids == self.image_token_id).long()


def load_vision(model: Model, keyframes: Keyframes, max_pixels: int) -> Vision:
    """The image processor of `model.path`. Raises UserError for models without one, or of a family that is not supported."""
    from transformers import AutoConfig, AutoImageProcessor

    try:
        config = AutoConfig.from_pretrained(model.path, revision=model.revision)
        image_token_id = getattr(config, "image_token_id", None)
        processor = AutoImageProcessor.from_pretrained(model.path, revision=model.revision) if image_token_id else None
    except (OSError, ValueError, ImportError) as error:
        raise not_found(model.path, error) from None
    if image_token_id is None or processor is None or "Qwen2VLImageProcessor" not in type(processor).__name__:
        raise UserError(
            f"model.path={public_name(model.path)} is no vision-language model of the Qwen2-VL, Qwen2.5-VL or Qwen3-VL kind, so "
            "data.prompt_view=keyframe has nowhere to put images. Choose such a model, or data.prompt_view=text."
        )
    least = dict(processor.size)["shortest_edge"]
    if max_pixels < least:
        raise ConfigError("data.max_pixels", max_pixels, f"at least {least}, the smallest image that this model takes")
    processor.size = type(processor.size)(shortest_edge=least, longest_edge=max_pixels)
    return Vision(processor, keyframes, image_token_id)


def prompt_positions(model: Any, inputs: "dict[str, torch.Tensor]") -> "torch.Tensor":
    """Rotary positions (3, 1, tokens) of a prompt with images: time, height and width (Qwen2-VL, Wang et al. 2024, section 2.1)."""
    rope = next(module for module in model.modules() if hasattr(module, "get_rope_index"))
    positions, _ = rope.get_rope_index(
        inputs["input_ids"], mm_token_type_ids=inputs["mm_token_type_ids"], image_grid_thw=inputs["image_grid_thw"]
    )
    return positions
