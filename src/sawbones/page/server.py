"""The page over HTTP, for this machine alone: 127.0.0.1, a token in the link, Host and Origin
checked.
"""

from __future__ import annotations

import hmac
import json
import math
import secrets
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sawbones.page.document import document
from sawbones.page.hub import Hub

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
KEEP_ALIVE_SECONDS = 10.0
MOST_CLIENTS = 32


class PageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: Hub, port: int = 0) -> None:
        super().__init__((ADDRESS, port), Handler)
        self.hub = hub
        self.token = secrets.token_urlsafe(18)
        self.page, self.policy = document()
        self.last_seen = time.monotonic()

    @property
    def link(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/?token={self.token}"

    def start(self) -> None:
        self.hub.start()
        threading.Thread(target=self.serve_forever, name="page-http", daemon=True).start()

    def stop(self) -> None:
        self.hub.close()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Sawbones", ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        asked = {name: values[-1] for name, values in parse_qs(address.query).items()}
        refused = self._refused(asked.get("token", ""))
        if refused:
            self._answer(HTTPStatus.FORBIDDEN, refused, "text/plain")
        elif address.path == "/":
            self._answer(HTTPStatus.OK, self.server.page, "text/html")
        elif address.path == "/series":
            self._series(asked)
        elif address.path == "/events":
            self._events(asked.get("cursor", ""))
        else:
            self._answer(HTTPStatus.NOT_FOUND, "There is nothing here.", "text/plain")

    def _refused(self, token: str) -> str:
        """Another site that has this browser open must not be able to read a run."""
        if _host_of(f"//{self.headers.get('Host', '')}") not in NAMES:
            return "This page is for 127.0.0.1 only."
        origin = self.headers.get("Origin")
        if origin is not None and _host_of(origin) not in NAMES:
            return "Another site may not read this page."
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return "The link needs its token: use the one that sawbones printed."
        return ""

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self._own_headers()
        self.end_headers()
        self.wfile.write(data)

    def _own_headers(self) -> None:
        self.send_header("Content-Security-Policy", self.server.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")

    def _series(self, asked: dict[str, str]) -> None:
        try:
            first, last = float(asked["from"]), float(asked["to"])
        except (KeyError, ValueError):
            first = last = math.nan
        if not (math.isfinite(first) and math.isfinite(last)):
            self._answer(HTTPStatus.BAD_REQUEST, "from and to are steps", "text/plain")
            return
        found = self.server.hub.zoomed(first, last)
        self._answer(HTTPStatus.OK, json.dumps(found, allow_nan=False), "application/json")

    def _events(self, cursor: str) -> None:
        hub = self.server.hub
        if hub.clients >= MOST_CLIENTS:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages are open.", "text/plain")
            return
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self._own_headers()
        self.end_headers()
        hub.clients += 1
        try:
            self._tell(hub, _cursors(cursor, len(hub.runs)))
        except OSError:  # the client has gone
            pass
        finally:
            hub.clients -= 1
            self.server.last_seen = time.monotonic()

    def _tell(self, hub: Hub, cursors: list[int]) -> None:
        self._send("start", hub.start_message())
        version, spoke = 0, time.monotonic()
        while not hub.is_closed:
            news = hub.steps_since(cursors)
            if news is not None:
                self._send("steps", news)
            if hub.version != version:
                before, version = version, hub.version
                self._send("view", hub.state(before))
            elif news is None and time.monotonic() - spoke > KEEP_ALIVE_SECONDS:
                self.wfile.write(b": still here\n\n")
                self.wfile.flush()
            else:
                hub.wait(1.0)
                continue
            spoke = time.monotonic()
        self._send("over", {})

    def _send(self, event: str, data: dict[str, Any]) -> None:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        self.wfile.write(f"event: {event}\ndata: {text}\n\n".encode("utf-8", "backslashreplace"))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal belongs to the user."""


def _host_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _cursors(text: str, count: int) -> list[int]:
    """`12-40`: the rows that a client has of each run; anything else begins anew."""
    parts = text.split("-")
    if len(parts) != count or not all(part.isascii() and part.isdigit() for part in parts):
        return [0] * count
    return [int(part) for part in parts]
