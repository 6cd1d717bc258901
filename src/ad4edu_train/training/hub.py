"""Upload of a finished adapter to a private repository, where the settings name one."""

import json
import re
from pathlib import Path

import httpx2
from huggingface_hub import CommitOperationAdd, HfApi

from ad4edu_train.errors import UserError

WEIGHTS, SETTINGS, CARD = "adapter_model.safetensors", "adapter_config.json", "README.md"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
CARD_TEXT = """---
library_name: peft
license: other
license_name: no-redistribution
tags: [lora, dpo]
{base}---

# {name}

{note}
"""


def upload_adapter(adapter: Path, repo_id: str, *, note: str) -> str:
    """Send weights and config of an adapter folder to the private repository `repo_id`, in one commit with a card that holds `note`.

    Returns the commit's address. Nothing else of the folder leaves the machine. Raises UserError when the repository is public or
    cannot be reached; the adapter then still lies where it was.
    """
    if not note.strip():
        raise UserError("an adapter is uploaded only with a note on its data.")
    settings = json.loads((adapter / SETTINGS).read_text())
    base = settings.get("base_model_name_or_path") or ""
    if not HUB_ID.fullmatch(base):
        # A local folder: its name says what the base is, the way to it is the user's own business.
        settings["base_model_name_or_path"] = Path(base).name
    line = f"base_model: {base}\n" if HUB_ID.fullmatch(base) else ""
    card = CARD_TEXT.format(base=line, name=repo_id.rpartition("/")[2], note=note.strip())
    operations = [
        CommitOperationAdd(WEIGHTS, adapter / WEIGHTS),
        CommitOperationAdd(SETTINGS, json.dumps(settings, indent=2).encode()),
        CommitOperationAdd(CARD, card.encode()),
    ]
    api = HfApi()
    try:
        api.create_repo(repo_id, private=True, exist_ok=True)
        if api.repo_info(repo_id).private is not True:
            raise UserError(
                f"hub.repo_id={repo_id} is a public repository, and the data set's card forbids redistribution. Nothing was uploaded. "
                "Make it private in its settings, or name another one."
            )
        return api.create_commit(repo_id, operations, commit_message="Adapter of ad4edu-train").commit_url
    except (OSError, httpx2.HTTPError) as error:
        raise UserError(
            f"hub.repo_id={repo_id}: the adapter was not uploaded ({type(error).__name__}: {_first_line(error)}). It lies in {adapter}. "
            "Log in with `hf auth login`; check the name, the network and that HF_HUB_OFFLINE is not set."
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
