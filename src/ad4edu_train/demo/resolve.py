"""What `demo` stands for in a config: the bundled model's folder, tiny random ones, a synthetic corpus; made in the user's cache."""

from pathlib import Path
from typing import TypeVar

from ad4edu_train.config import Data, EvaluateConfig, Model, TrainConfig
from ad4edu_train.demo.cache import cache_root, made_once
from ad4edu_train.demo.model import unpack_model
from ad4edu_train.demo.random_vlm import tiny_vlm

DEMO = "demo"
TINY = {"tiny_qwen2_5_vl": "qwen2_5_vl", "tiny_qwen3_vl": "qwen3_vl"}
Config = TypeVar("Config", TrainConfig, EvaluateConfig)


def resolve(config: Config) -> Config:
    """The config with `model.path: demo` and `data.root: demo` replaced by folders."""
    changes: dict[str, Model | Data] = {}
    if config.model.path == DEMO:
        changes["model"] = config.model.model_copy(update={"path": str(unpack_model())})
    if config.model.path in TINY:
        changes["model"] = config.model.model_copy(update={"path": str(tiny_vlm(TINY[config.model.path]))})
    if config.data.root == DEMO:
        corpus = demo_corpus(config.data.demo_moments, config.data.demo_seed)
        changes["data"] = config.data.model_copy(update={"root": str(corpus)})
    return config.model_copy(update=changes)


def demo_corpus(moments: int, seed: int) -> Path:
    """Folder of the synthetic corpus of that size and seed, written on the first call."""
    folder = cache_root() / f"corpus-{generator_version()}-{moments}-{seed}"

    def write(written: Path) -> None:
        from ad4edu_train.demo.corpus import Settings
        from ad4edu_train.demo.write import write_corpus

        write_corpus(written, Settings(moments=moments, seed=seed))

    return made_once(folder, write, f"Writing the synthetic corpus ({moments} test moments, seed {seed})")


def generator_version() -> str:
    """Eight hex digits of the generator's files and the scorer's, whose ratings it ships: no cached corpus of older ones is taken."""
    import hashlib

    digest = hashlib.sha256()
    here = Path(__file__).parent
    folders = (here, here.parent / "scoring")
    files = (path for folder in folders for pattern in ("**/*.py", "**/*.yaml") for path in folder.glob(pattern))
    for path in sorted(files):
        if path.name not in ("resolve.py", "cache.py", "model.py", "random_vlm.py", "audit.py", "__main__.py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
