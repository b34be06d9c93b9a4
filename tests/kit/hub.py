"""A stand-in of the Hugging Face Hub on loopback: what `push` and `hf:user/name` ask of it."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


class StandIn:
    """The hub's state: files by repository, and the requests that came."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.requests: list[str] = []
        self.tokens: set[str | None] = set()
        self.card_errors: list[str] = []


@contextmanager
def running():
    """Serve a stand-in; yields its state and its address."""
    hub = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def reply(self, body: bytes | dict, status: int = 200, **headers: str) -> None:
            data = json.dumps(body).encode() if isinstance(body, dict) else body
            self.send_response(status)
            headers = {"Content-Length": str(len(data)), "X-Repo-Commit": COMMIT} | headers
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            hub.requests.append(f"POST {self.path}")
            hub.tokens.add(self.headers.get("Authorization"))
            if self.path == "/api/validate-yaml":
                errors = [{"message": text} for text in hub.card_errors]
                self.reply({"warnings": [], "errors": errors}, 400 if errors else 200)
            elif self.path == "/api/repos/create":
                request = json.loads(body)
                name = (
                    f"{request['organization']}/{request['name']}" if request.get("organization") else request["name"]
                )
                hub.private[name] = request.get("visibility") == "private" or bool(request.get("private"))
                hub.files.setdefault(name, {})
                self.reply({"url": f"http://{self.headers['Host']}/{name}", "name": name})
            elif "/preupload/" in self.path:
                paths = [file["path"] for file in json.loads(body)["files"]]
                modes = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]
                self.reply({"files": modes})
            elif "/commit/" in self.path:
                name = "/".join(self.path.split("/")[3:5])
                for line in body.splitlines():
                    entry = json.loads(line)
                    if entry["key"] == "file":
                        hub.files[name][entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                self.reply(
                    {
                        "success": True,
                        "commitOid": COMMIT,
                        "commitUrl": f"http://{self.headers['Host']}/{name}/commit/{COMMIT}",
                    }
                )
            else:
                self.reply({"error": "unknown"}, 404)

        def do_GET(self) -> None:
            hub.requests.append(f"{self.command} {self.path}")
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[:2] == ["api", "models"]:
                name = "/".join(parts[2:4])
                if name not in hub.files:
                    self.reply({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
                elif "tree" in parts:
                    tree = [
                        {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                        for path, data in hub.files[name].items()
                    ]
                    self.reply(json.dumps(tree).encode())
                else:
                    siblings = [{"rfilename": path} for path in hub.files[name]]
                    self.reply({"id": name, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []})
            else:
                name, path = "/".join(parts[:2]), "/".join(parts[4:])
                data = hub.files.get(name, {}).get(path)
                if data is None:
                    self.reply(b"", 404, X_Error_Code="EntryNotFound")
                else:
                    self.reply(data, ETag=f'"{hashlib.sha1(data).hexdigest()}"')

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
