"""`hf` fetches a data set from a hub endpoint: a local one that serves the demo corpus."""

import json
import os
import subprocess
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import ROOT

REPO, COMMIT = "lab/AD4Edu-Demo", "1" * 40


class Hub(BaseHTTPRequestHandler):
    """The calls of a snapshot download: what the repository holds, and each file."""

    def do_GET(self):
        self.answer(body=True)

    def do_HEAD(self):
        self.answer(body=False)

    def answer(self, body):
        folder, path = self.server.folder, self.path.partition("?")[0]
        names = [name.relative_to(folder).as_posix() for name in folder.rglob("*") if name.is_file()]
        resolve = f"/datasets/{REPO}/resolve/{COMMIT}/"
        if path.startswith(resolve):
            content = (folder / path.removeprefix(resolve)).read_bytes()
            headers = {"ETag": f'"{sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT}
        elif path.startswith(f"/api/datasets/{REPO}/tree/"):
            content = json.dumps([{"type": "file", "path": name, "size": 1, "oid": "2" * 40} for name in names]).encode()
            headers = {"Content-Type": "application/json"}
        elif path.startswith(f"/api/datasets/{REPO}"):
            content = json.dumps(
                {"id": REPO, "sha": COMMIT, "private": True, "siblings": [{"rfilename": name} for name in names]}
            ).encode()
            headers = {"Content-Type": "application/json"}
        else:
            content, headers = b"{}", {}
            self.send_response(404)
        if headers:
            self.send_response(200)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def endpoint(demo_folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.folder = demo_folder
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("config", ["default", "test_human"])
def test_shipped_ratings_are_checked_from_a_hub(endpoint, tmp_path, config):
    environment = os.environ | {
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": "x",
    }
    line = [sys.executable, str(ROOT / "eval/adedueval.py"), "hf", "--repo", REPO, "--config", config, "--check-shipped"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Every shipped rating and component" in done.stdout
    absent = subprocess.run([*line[:4], "lab/absent"], env=environment, capture_output=True, text=True)
    assert absent.returncode == 2
    assert "Traceback" not in absent.stderr
