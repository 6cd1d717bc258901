"""Train a LoRA adapter by DPO on audio description preference pairs. `python train_dpo.py` runs the demo; see --help."""

import sys

import hydra
from omegaconf import DictConfig

from ad4edu_train.config import TrainConfig, parse, refuse_multirun, refuse_unknown_overrides, to_plain
from ad4edu_train.demo.resolve import resolve
from ad4edu_train.errors import plain_errors


@hydra.main(version_base="1.3", config_path="configs", config_name="train")
def main(raw: DictConfig) -> None:
    with plain_errors():
        config = resolve(parse(TrainConfig, to_plain(raw)))
        from ad4edu_train.training.run import train

        train(config)


if __name__ == "__main__":
    with plain_errors():
        refuse_multirun(sys.argv[1:])
        refuse_unknown_overrides(TrainConfig, sys.argv[1:])
    main()
