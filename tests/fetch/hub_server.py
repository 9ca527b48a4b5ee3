"""A hub on the loopback interface: the few calls that downloading a snapshot makes, really served.

A test talks to it from a new process with ``HF_ENDPOINT`` set, because the hub's library reads its
environment when it is imported.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"

# (kind, id) -> path -> content, such as ("models", "owner/tiny") -> {"config.json": b"{}"}
Repositories = Mapping[tuple[str, str], Mapping[str, bytes]]


class Hub:
    """Attributes: ``endpoint`` for HF_ENDPOINT; ``gets``, the paths of files sent."""

    def __init__(self, repositories: Repositories) -> None:
        self.repositories = repositories
        self.gets: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self, body=True)

            def do_HEAD(self) -> None:
                hub.answer(self, body=False)

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                hub.answer(self, body=True, posted=self.rfile.read(length))

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler, *, body: bool, posted: bytes = b"") -> None:
        parts = urlsplit(request.path).path.strip("/").split("/")
        api = parts[0] == "api"
        if api:
            parts = parts[1:]
        kind = parts.pop(0) if parts[0] in ("models", "datasets") else "models"
        name = "/".join(parts[:2])
        rest = parts[2:]
        if name == "owner/gated":
            return send(request, 403, b"", {"X-Error-Code": "GatedRepo"})
        if name == "owner/broken":
            return send(request, 500, b"", {})
        files = self.repositories.get((kind, name))
        if files is None:
            return send(request, 404, b"", {"X-Error-Code": "RepoNotFound"})
        if api and not (rest[1:2] and rest[1] not in (COMMIT, "main", "v1")):
            return send(request, 200, json.dumps(self.listing(name, rest, files, posted)).encode())
        if rest[1] not in (COMMIT, "main", "v1"):
            return send(request, 404, b"", {"X-Error-Code": "RevisionNotFound"})
        path = "/".join(rest[2:])
        if path not in files:
            return send(request, 404, b"", {"X-Error-Code": "EntryNotFound"})
        if body:
            self.gets.append(path)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{oid(files[path])}"'}
        return send(request, 200, files[path] if body else None, headers, len(files[path]))

    def listing(
        self, name: str, rest: list[str], files: Mapping[str, bytes], posted: bytes
    ) -> object:
        entries = [
            {"type": "file", "path": path, "size": len(content), "oid": oid(content)}
            for path, content in files.items()
        ]
        if rest[:1] == ["tree"]:
            return entries
        if rest[:1] == ["paths-info"]:
            return [entry for entry in entries if str(entry["path"]) in posted.decode()]
        siblings = [{"rfilename": path} for path in files]
        return {"id": name, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0}


def oid(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


def send(
    request: BaseHTTPRequestHandler,
    status: int,
    content: bytes | None,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> None:
    request.send_response(status)
    for name, value in (headers or {}).items():
        request.send_header(name, value)
    request.send_header("Content-Length", str(len(content or b"") if length is None else length))
    request.end_headers()
    if content is not None and request.command != "HEAD":
        request.wfile.write(content)


@contextmanager
def serve(repositories: Repositories) -> Iterator[Hub]:
    hub = Hub(repositories)
    thread = threading.Thread(target=hub.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.server.shutdown()
        hub.server.server_close()
        thread.join()


def run_stage(
    stage: str, *arguments: str, cwd: Path, endpoint: str, offline: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m stages.<stage>`` against a hub, with an empty params file and own cache."""
    (cwd / "params.yaml").touch()
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cwd / "hf"),
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "HF_DATASETS_OFFLINE": "1" if offline else "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    command = [sys.executable, "-m", f"stages.{stage}", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
