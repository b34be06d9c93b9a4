"""A web server on the loopback that stands for the hosts of published files, with their faults."""

import contextlib
import hashlib
import io
import json
import random
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = (
    *("cut", "busy", "later", "reset", "no_ranges", "page", "hang", "changed", "short_range", "gone", "forbidden"),
    *("unsized", "unsized cut", "chunked", "chunked cut", "no content", "limit", "gzip", "wrong length", "loop"),
)


class Host(ThreadingHTTPServer):
    """Serves `files`: path -> bytes. `fault(path)` names the fault of a request, one of FAULTS, or is "". `seen`: the
    requests, (path, headers, status)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, files, fault, wait):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.fault, self.wait, self.seen = files, fault, wait, []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client that has left is no news."""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        """Says nothing."""

    def do_GET(self):
        server, path = self.server, self.path
        fault = server.fault(path) if path in server.files else "gone"
        if fault == "reset":
            return self.connection.close()
        if fault == "hang":
            return time.sleep(2)
        if status := {"busy": 503, "later": 429, "gone": 404, "forbidden": 403, "no content": 204}.get(fault):
            return self.answer(status, b"no" * (status != 204), {"Retry-After": server.wait})
        if fault == "page":
            return self.answer(200, b"<!DOCTYPE html><p>Moved.</p>", {"Content-Type": "text/html"})
        if fault == "limit":
            return self.answer(200, b"rate limit exceeded", {"Content-Type": "text/plain"})
        if fault == "loop":
            return self.answer(302, b"", {"Location": path})
        body = server.files[path] + b"!" * (fault == "changed")
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        header, status, first, last = self.headers["Range"], 200, 0, len(body) - 1
        if header and fault != "no_ranges" and self.headers.get("If-Range", etag) == etag:
            start, _, end = header.removeprefix("bytes=").partition("-")
            first, last, status = int(start or max(0, len(body) - int(end))), min(int(start and end or last), last), 206
            if first > last:
                return self.answer(416, b"", {})
        headers = {"ETag": etag, "Content-Length": str(last + 1 - first)}
        if status == 206:
            headers["Content-Range"] = f"bytes {first + (fault == 'short_range')}-{last}/{len(body)}"
        body = body[first : last + 1]
        if fault.startswith("chunked"):
            body, headers = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body), headers | {"Transfer-Encoding": "chunked"}
        headers |= {"Content-Encoding": "gzip"} if fault == "gzip" else {}
        headers["Content-Length"] = {"unsized": "", "chunked": "", "wrong": "many"}.get(
            fault.partition(" ")[0], headers["Content-Length"]
        )
        return self.answer(status, body[: len(body) // 2] if fault.endswith("cut") else body, headers)

    def answer(self, status, body, headers):
        self.server.seen.append((self.path, dict(self.headers), status))
        self.send_response(status)
        for name, value in (
            {"Content-Type": "application/octet-stream", "Content-Length": str(len(body))} | headers
        ).items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def host(files, fault=lambda path: "", wait="0"):
    """A running `Host`. `fault`: a function, or a list of the faults of the first requests. `wait`: seconds that a
    busy server asks for."""
    faults = iter(fault) if isinstance(fault, list) else None
    server = Host(files, fault if faults is None else lambda path: next(faults, ""), wait)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def random_faults(seed, rate=0.4, kinds=FAULTS):
    """A fault in `rate` of the requests."""
    draw = random.Random(seed)
    return lambda path: draw.choice(kinds) if draw.random() < rate else ""


def zipped(members):
    """A zip archive: name -> bytes or text."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def moved(source, url, same=False):
    """A published set whose files are at `url`, by the last parts of their addresses. `same`: the members of archives
    are the published ones; archives never are."""
    table = source.model_dump(mode="json")
    for file in table["files"]:
        file["urls"] = [f"{url}/{name.rsplit('/', 1)[1]}" for name in file["urls"]]
        file |= {"bytes": None, "sha256": ""} | ({} if same else {"members": dict.fromkeys(file["members"], "")})
    for pictures in table["pictures"]:
        pictures["urls"] = [f"{url}/{name.rsplit('/', 1)[1]}" for name in pictures["urls"]]
    return type(source).model_validate(table)


def vqg_coco(questions, pictures, captions):
    """The files of VQG_COCO as its hosts have them. `questions`: name of a CSV file -> content; `pictures`: name of a
    file -> bytes; `captions`: COCO's JSON."""
    return {
        "/Visual_Question_Generation_dataset_1.0.zip": zipped(
            {f"VQG/{name}": text for name, text in questions.items()}
        ),
        "/annotations_trainval2014.zip": zipped({"annotations/captions_train2014.json": json.dumps(captions)}),
        **{f"/{name}": content for name, content in pictures.items()},
    }
