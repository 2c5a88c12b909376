# SPDX-License-Identifier: MIT
"""A file server on the loopback interface that behaves as servers of distant scenes do: it answers ranges, late and
slowly if requested, counts requests, and misbehaves on demand."""
import collections
import email.utils
import hashlib
import http.server
import pathlib
import re
import socket
import threading
import time
import types
import urllib.parse

# first, last: requested bytes, or None; begun, ended: seconds of one clock
Request = collections.namedtuple("Request", "method path first last status sent begun ended", defaults=(0.0, 0.0))

STEP = 64 << 10


class Server:
    """Serves the files of a folder. latency: seconds before each answer; rate: bytes per second for all
    connections together.

    fault(request) -> None, or a fault (request has method, path, first and last):
      404, 503 ...   answers with this status
      "whole"        ignores the range: answers 200 and the file
      "cut"          closes the connection in the middle of the answer
      "stall"        stops in the middle of the answer, until the client leaves
      "drip"         sends ten bytes per second from the middle of the answer on
      a function     of the answer, which it may change: answer.status, .headers, .body; with answer.endless, a block is
                     sent repeatedly after the body, until the client leaves
    lists: answers requests for folders with listings; closes: closes each connection after its first answer.
    with Server(folder) as server: ... server.url("scene.tif"), server.take(); most_at_once: requests for bytes
    """

    def __init__(self, folder, latency=0.0, rate=None, fault=None, tags=True, dated=True, lists=False, closes=False):
        self.folder, self.latency, self.rate, self.fault = pathlib.Path(folder), latency, rate, fault or (lambda request: None)
        self.tags, self.dated, self.lists, self.closes = tags, dated, lists, closes
        self.requests, self.lock, self.gone = [], threading.Lock(), threading.Event()
        self.now, self.most_at_once, self.line_is_free = 0, 0, 0.0
        handler = type("Handler", (_Handler,), {"server_of_files": self})
        self.http = _Http(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.gone.set()
        self.http.shutdown()
        self.http.server_close()

    def url(self, name):
        return f"http://127.0.0.1:{self.http.server_address[1]}/{urllib.parse.quote(str(name))}"

    def vsicurl(self, name):
        return "/vsicurl/" + self.url(name)

    def take(self):
        """Returns the requests since the last call."""
        with self.lock:
            requests, self.requests = self.requests, []
        return requests

    def note(self, request):
        with self.lock:
            self.requests.append(request._replace(ended=time.monotonic()))

    def enter(self, step):
        with self.lock:
            self.now += step
            self.most_at_once = max(self.most_at_once, self.now)


    def wait_for_the_line(self, bytes):
        """Waits until this number of bytes may be sent."""
        if not self.rate:
            return
        with self.lock:
            now = time.monotonic()
            turn = max(now, self.line_is_free)
            self.line_is_free = turn + bytes / self.rate
        time.sleep(turn - now)


class _Http(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # clients may leave at any time


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_files = None

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def range(self, size):
        """Returns (first, last) of the header Range; None without it."""
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not match:
            return None
        return int(match[1]), min(int(match[2]) if match[2] else size - 1, size - 1)

    def answer(self, with_body):
        files = self.server_of_files
        files.enter(1 if with_body else 0)
        try:
            self.answer_of(files, with_body)
        finally:
            files.enter(-1 if with_body else 0)

    def answer_of(self, files, with_body):
        begun = time.monotonic()
        time.sleep(files.latency)
        name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).lstrip("/")
        path = files.folder / name
        facts = path.stat() if path.is_file() else None
        wanted = self.range(facts.st_size) if facts else None
        asked = Request(self.command, name, *(wanted or (None, None)), 0, 0, begun)
        fault = files.fault(asked)
        status = fault if isinstance(fault, int) else 404 if facts is None else 206 if wanted and fault != "whole" else 200
        if status == 206 and wanted[0] > wanted[1]:
            status = 416
        if files.lists and path.is_dir() and fault is None:
            return self.list(files, path, asked, with_body)
        if status >= 400:
            files.note(asked._replace(status=status))
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first, last = wanted if status == 206 else (0, facts.st_size - 1)
        headers = {"Accept-Ranges": "bytes", "Content-Length": str(last - first + 1)}
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{last}/{facts.st_size}"
        if files.dated:
            headers["Last-Modified"] = email.utils.formatdate(facts.st_mtime, usegmt=True)
        if files.tags:
            headers["ETag"] = '"%s"' % hashlib.sha256(f"{facts.st_mtime_ns} {facts.st_size} {facts.st_ino}".encode()).hexdigest()[:16]
        if callable(fault):
            return self.change(files, fault, asked, types.SimpleNamespace(
                status=status, headers=headers, body=path.read_bytes()[first:last + 1], file=path, first=first, last=last), with_body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        sent = 0
        try:
            if with_body:
                for sent in self.send_file(files, path, first, last, fault):
                    pass
        finally:
            files.note(asked._replace(status=status, sent=sent))

    def change(self, files, fault, asked, answer, with_body):
        length = answer.headers["Content-Length"]
        fault(answer)
        if answer.headers.get("Content-Length") == length:
            answer.headers["Content-Length"] = str(len(answer.body))
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        sent = len(answer.body)
        try:
            if with_body:
                self.wfile.write(answer.body)
                while getattr(answer, "endless", None) and not files.gone.is_set():
                    self.wfile.write(answer.endless)
                    sent += len(answer.endless)
        except OSError:
            self.close_connection = True
        files.note(asked._replace(status=answer.status, sent=sent))

    def list(self, files, path, asked, with_body):
        """Lists a folder as Apache does."""
        title = "Index of /" + asked.path.rstrip("/")
        rows = "".join(f'<tr><td><a href="{urllib.parse.quote(f.name)}">{f.name}</a></td><td align="right">01-Jan-2020 00:00  </td>'
                       f'<td align="right">{f.stat().st_size}</td></tr>\n' for f in sorted(path.iterdir()))
        text = f"<html><head><title>{title}</title></head><body><h1>{title}</h1><table>\n{rows}</table></body></html>\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if with_body:
            self.wfile.write(text)
        files.note(asked._replace(status=200, sent=len(text)))

    def end_headers(self):
        if self.server_of_files.closes:
            self.send_header("Connection", "close")
        super().end_headers()

    def send_file(self, files, path, first, last, fault):
        sent, size = 0, last - first + 1
        with open(path, "rb") as file:
            while sent < size:
                if fault == "drip" and sent >= size // 2:
                    if files.gone.wait(0.1):
                        return
                if fault in ("cut", "stall") and sent >= size // 2:
                    if fault == "stall":
                        files.gone.wait(600)
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                step = min(STEP, size - sent, max(1, size // 2 - sent) if fault in ("cut", "stall", "drip") else size)
                files.wait_for_the_line(step)
                got = self.connection.sendfile(file, first + sent, step) if not self.wfile.closed else 0
                if not got:
                    self.close_connection = True
                    return
                sent += got
                yield sent


if __name__ == "__main__":
    import argparse
    import json
    import sys

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds before each answer")
    parser.add_argument("--rate", type=float, help="bytes a second of all connections together")
    args = parser.parse_args()
    with Server(args.folder, args.latency, args.rate) as server:
        print(server.url(""), flush=True)
        for _ in sys.stdin:  # each line requests the list of requests since the previous one
            requests = server.take()
            print(json.dumps([r._asdict() for r in requests]), flush=True)
