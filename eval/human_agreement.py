"""Compare checkpoints with the human labels of test_human. `python eval/human_agreement.py 'checkpoints=[RUN]'`; see --help."""

import sys

import hydra
from omegaconf import DictConfig

from ad4edu_train.config import EvaluateConfig, parse, refuse_multirun, refuse_unknown_overrides, to_plain
from ad4edu_train.demo.resolve import resolve
from ad4edu_train.errors import plain_errors


@hydra.main(version_base="1.3", config_path="../configs", config_name="evaluate")
def main(raw: DictConfig) -> None:
    with plain_errors():
        config = resolve(parse(EvaluateConfig, to_plain(raw)))
        from ad4edu_train.agreement.evaluate import evaluate
        from ad4edu_train.report.agreement import write_markdown
        from ad4edu_train.report.console import print_agreement

        folder = evaluate(config)
        write_markdown(folder)
        print_agreement(folder)


if __name__ == "__main__":
    with plain_errors():
        refuse_multirun(sys.argv[1:])
        refuse_unknown_overrides(EvaluateConfig, sys.argv[1:])
    main()
