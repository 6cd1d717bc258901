"""Shared pieces of the tests: a tiny random language model with a chat template, and configs composed as the scripts compose them."""

import json
import os
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
# Tiny models gain nothing from a second thread, and lose tenfold where another process wants the core.
os.environ["OMP_NUM_THREADS"] = "1"
ROOT = Path(__file__).parent.parent

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Opens a thinking block in the generation prompt that the whole conversation lacks.
OPENS_THINKING = CHATML.replace("<|im_start|>assistant\n{% endif %}", "<|im_start|>assistant\n<think>\n{% endif %}")
# Honours enable_thinking, and renders an empty block in both places when it is off.
KNOWS_THINKING = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, demo_folder) -> Path:
    """Folder of a random two-layer Llama with a byte-level BPE tokenizer: the real classes, nothing pretrained."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    prompts = [json.loads(line)["messages"][-1]["content"][-1]["text"] for line in (demo_folder / "dpo_prompts.jsonl").open()]
    bpe = trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, special_tokens=[]
    )
    tokenizer.train_from_iterator(prompts, bpe)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHATML,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            eos_token_id=fast.eos_token_id,
            pad_token_id=fast.pad_token_id,
            tie_word_embeddings=True,
        )
    )
    # Random weights of the default size give nearly flat distributions; larger ones make every token matter.
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.mul_(4)
    folder = tmp_path_factory.mktemp("model") / "tiny-llama"
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def tokenizer(tiny_model):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory) -> Path:
    """A small synthetic data set as the demo writes it."""
    from ad4edu_train.demo.corpus import Settings
    from ad4edu_train.demo.write import write_corpus

    folder = tmp_path_factory.mktemp("demo") / "corpus"
    write_corpus(folder, Settings(moments=12, seed=3))
    return folder


@pytest.fixture
def compose():
    """compose(schema, config_name, *overrides) -> checked config, composed by Hydra from configs/."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    from ad4edu_train.config import parse, to_plain

    def composed(schema, name, *overrides):
        with initialize_config_dir(str(ROOT / "configs"), version_base="1.3"):
            return parse(schema, to_plain(hydra_compose(name, overrides=list(overrides))))

    return composed


@pytest.fixture
def tiny_run(compose, tiny_model, demo_folder, tmp_path):
    """tiny_run(*overrides) -> config of a training run of the tiny model on a few pairs of the synthetic corpus."""
    from ad4edu_train.config import TrainConfig

    def configured(*overrides, root=demo_folder, output_root=tmp_path / "runs"):
        return compose(
            TrainConfig,
            "train",
            f"model.path={tiny_model}",
            f"data.root={root}",
            "data.max_train_pairs=12",
            "data.max_tokens=4096",
            f"trainer.output_root={output_root}",
            "trainer.learning_rate=0.01",
            "trainer.batch_size=8",
            "trainer.accumulation=1",
            "trainer.warmup_steps=2",
            "trainer.log_every=1",
            "trainer.max_steps=4",
            "trainer.save_every=2",
            "trainer.threads=1",
            "experiment_name=tiny",
            *overrides,
        )

    return configured


def user(text: str) -> list[dict]:
    """A text prompt as messages."""
    return [{"role": "user", "content": text}]


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]
