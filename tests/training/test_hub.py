"""Upload of an adapter: named files, private repositories, and a note that says what the data's card forbids."""

import base64
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ad4edu_train.errors import UserError
from ad4edu_train.training.hub import upload_adapter

NOTE = "The data set's card forbids redistribution of the lecture material and what derives from it."
UPLOAD = """
import sys
from pathlib import Path
from ad4edu_train.errors import plain_errors
from ad4edu_train.training.hub import upload_adapter
with plain_errors():
    print(upload_adapter(Path(sys.argv[1]), "lab/ad-adapter", note=sys.argv[2]))
"""


class HubServer(BaseHTTPRequestHandler):
    """The five calls of an upload. `server.private` is what the repository is, whatever was asked for."""

    def do_GET(self):
        self.server.calls.append(("GET", self.path, None))
        known = self.path == "/api/models/lab/ad-adapter"
        repository = {"id": "lab/ad-adapter", "private": self.server.private, "sha": "0" * 40, "siblings": []}
        self._answer(repository if known else {}, 200 if known else 404)

    def do_POST(self):
        length, body = self.headers["Content-Length"], b""
        if length is None:  # sent in chunks
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(length))
        self.server.calls.append(("POST", self.path, body))
        if self.server.status != 200:
            self._answer({"error": "no right to write here"}, self.server.status)
        elif self.path.endswith("/preupload/main"):
            asked = json.loads(body)["files"]
            self._answer({"files": [{"path": item["path"], "uploadMode": "regular", "shouldIgnore": False} for item in asked]})
        elif self.path.endswith("/commit/main"):
            self._answer({"commitUrl": f"{self.server.url}/lab/ad-adapter/commit/1", "commitOid": "1" * 40, "success": True})
        elif self.path == "/api/repos/create":
            self._answer({"url": f"{self.server.url}/lab/ad-adapter", "name": "lab/ad-adapter", "id": "1"})
        else:
            assert self.path == "/api/validate-yaml"
            self._answer({"errors": [], "warnings": []})

    def _answer(self, content, status=200):
        encoded = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubServer)
    server.calls, server.private, server.status = [], True, 200
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def adapter(tmp_path):
    """An adapter folder with more in it than may leave the machine."""
    folder = tmp_path / "CANARY-RUN" / "adapter"
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(b"weights")
    (folder / "adapter_config.json").write_text(json.dumps({"r": 16, "base_model_name_or_path": "/home/CANARY/smollm2"}))
    for name in ("README.md", "training_args.bin", "samples.jsonl", "validation.jsonl", ".env", "tokenizer.json"):
        (folder / name).write_text("CANARY")
    return folder


@pytest.fixture
def upload(adapter, tmp_path):
    """upload(url, **variables) -> finished process that uploads the adapter to a hub at `url`."""

    def run(url, note=NOTE, **variables):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        hub = {"HF_ENDPOINT": url, "HF_TOKEN": "hf_test", "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "127.0.0.1"}
        return subprocess.run(
            [sys.executable, "-c", UPLOAD, str(adapter), note],
            env=environment | hub | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def commit_of(server):
    [body] = [body for method, path, body in server.calls if path.endswith("/commit/main")]
    lines = [json.loads(line) for line in body.splitlines()]
    return {line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"}


def test_weights_config_and_card_go_to_a_private_repository_and_nothing_else(hub, upload):
    run = upload(hub.url)
    assert run.returncode == 0, run.stderr[-1000:]
    assert "/lab/ad-adapter/commit/" in run.stdout
    [created] = [json.loads(body) for method, path, body in hub.calls if path == "/api/repos/create"]
    assert created.get("private") is True or created.get("visibility") == "private", created
    files = commit_of(hub)
    assert set(files) == {"adapter_model.safetensors", "adapter_config.json", "README.md"}
    assert files["adapter_model.safetensors"] == b"weights"
    assert json.loads(files["adapter_config.json"]) == {"r": 16, "base_model_name_or_path": "smollm2"}
    assert NOTE in files["README.md"].decode()
    assert not any(b"CANARY" in (body or b"") for method, path, body in hub.calls)


def test_a_base_on_the_hub_is_named_in_the_card(hub, upload, adapter):
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "Qwen/Qwen3-8B"}))
    assert upload(hub.url).returncode == 0
    assert "\nbase_model: Qwen/Qwen3-8B\n" in commit_of(hub)["README.md"].decode()


@pytest.mark.parametrize("private", [False, None])
def test_a_public_repository_is_refused_and_gets_nothing(hub, upload, private):
    hub.private = private
    run = upload(hub.url)
    assert run.returncode == 2
    assert "public repository" in run.stderr
    assert not any("commit" in path or "preupload" in path for method, path, body in hub.calls)


@pytest.mark.parametrize("fault", ["no right", "no network", "offline"])
def test_a_failed_upload_says_where_the_adapter_is(hub, upload, adapter, fault):
    hub.status = 403
    run = upload("http://127.0.0.1:9" if fault == "no network" else hub.url, HF_HUB_OFFLINE=str(int(fault == "offline")))
    assert run.returncode == 2, run.stderr[-1000:]
    assert run.stderr.startswith("error: hub.repo_id=lab/ad-adapter: the adapter was not uploaded (")
    assert f"It lies in {adapter}." in run.stderr
    assert "Traceback" not in run.stderr


def test_no_upload_without_a_note(adapter):
    with pytest.raises(UserError, match="with a note"):
        upload_adapter(adapter, "lab/ad-adapter", note=" ")
