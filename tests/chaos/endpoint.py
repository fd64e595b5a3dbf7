"""A SPARQL endpoint that is just enough for one reader: the relations of a graph, and ordered pages of each.

It stumbles now and then (busy, or an answer that breaks off), and can be told to hold a request back, so that its reader is
killed between two pages."""

import http.server
import json
import random
import re
import threading
import urllib.parse

# Statements of each relation: pages of 10,000 are full, nearly empty, or both.
COUNTS = {"r": 10_005, "s": 7, "t": 20_000}
# The relations; and of each its pages and an empty one.
REQUESTS = 1 + 3 + 2 + 3


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        query = urllib.parse.parse_qs(form)["query"][0]
        if not self.server.may_answer():
            self.close_connection = True
            return
        kind, body = said(query)
        stumble = self.server.stumble()
        self.send_response(503 if stumble == "busy" else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if stumble == "breaks off" else body)
        if stumble == "breaks off":
            self.close_connection = True
        elif stumble is None:
            self.server.answered.append(query)

    def log_message(self, *_: object) -> None:
        pass


def said(query: str) -> tuple[str, bytes]:
    if query.startswith("SELECT DISTINCT ?p"):
        rows = [{"p": {"type": "uri", "value": f"http://x/{name}"}} for name in COUNTS]
        return "application/sparql-results+json", json.dumps({"head": {"vars": ["p"]}, "results": {"bindings": rows}}).encode()
    name, limit, offset = re.search(r"\?s <http://x/(\w)> .*LIMIT (\d+) OFFSET (\d+)", query).groups()
    page = range(int(offset), min(COUNTS[name], int(offset) + int(limit)))
    return "application/n-triples", "".join(f"<http://x/e{id}> <http://x/{name}> <http://x/e{id // 2}> .\n" for id in page).encode()


class Endpoint(http.server.ThreadingHTTPServer):
    """Serves from the beginning of a `with` to its end."""

    daemon_threads = True
    facts, entities = sum(COUNTS.values()), max(COUNTS.values())

    def __init__(self, draw: random.Random) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.draw, self.lock = draw, threading.Lock()
        self.answered: list[str] = []
        self.left: int | None = None
        self.held, self.released = threading.Event(), threading.Event()

    def __enter__(self) -> "Endpoint":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self.shutdown()
        self.server_close()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def hold_after(self, requests: int) -> None:
        """Holds back what comes after so many requests."""
        with self.lock:
            self.left = requests
            self.held.clear()
            self.released.clear()

    def release(self) -> None:
        """Lets go of what is held; it gets no answer."""
        with self.lock:
            self.left = None
        self.released.set()

    def may_answer(self) -> bool:
        with self.lock:
            holds = self.left == 0
            if self.left:
                self.left -= 1
        if holds:
            self.held.set()
            self.released.wait()
        return not holds

    def stumble(self) -> str | None:
        with self.lock:
            return self.draw.choice(["busy", "breaks off"]) if self.draw.random() < 0.1 else None
