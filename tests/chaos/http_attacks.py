"""Hostile HTTP: what one attack on a server sends, and what has to hold meanwhile."""

import json
import random
import socket
import time

# Requests that no browser sends; `{host}` is an address of the server.
ODD = [
    "GET / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
    "GET /../../etc/passwd HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /api/v1/%F0%28/rules?head=x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /api/v1/run/facts?relation=uncle_of&min_probability=nan HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "POST /api/v1/run/predict HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /api/v1/run/predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /api/v1/run/predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 99999999999999999999\r\n\r\n{{",
    "GET /api/v1/run/live/queue?relation=uncle_of&limit=99999999999 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "GET /api/v1/run/live/changes?after=-1 HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer\r\n\r\n",
    "POST /api/v1/run/live/facts HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
    "POST /api/v1/run/live/reload HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{{\"run\":\"../..\"}}",
    "GET / HTTP/9.9\r\nHost: {host}\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]
# The most that the memory of a server may grow, in MB, with `--in-flight-mb 32`.
MOST_MB = 150


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def status(port: int, path: str) -> int:
    """The status of a plain request; 0 if there is no answer."""
    with connect(port) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        line = client.makefile("rb").readline().split(b" ")
    return int(line[1]) if len(line) > 1 else 0


def status_in_time(port: int, path: str) -> int:
    """The status of a plain request. On a machine that does much else an answer may come too late: it is asked again."""
    for _ in range(10):
        try:
            seen = status(port, path)
        except TimeoutError:
            seen = 504
        if seen != 504:
            break
        time.sleep(1)
    return seen


def resident_mb(pid: int) -> float:
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))


def post(run: str, body: bytes, length: int | None = None, route: str = "predict") -> bytes:
    head = f"POST /api/v1/{run}/{route} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body


def hostile(run: str, draw: random.Random) -> bytes:
    """One request that is odd, broken, huge or stalled."""
    kind = draw.randrange(6)
    if kind == 5:
        return live_body(run, draw)
    if kind == 0:
        return draw.choice(ODD).format(host="127.0.0.1").encode("latin-1")
    if kind == 1:
        return draw.randbytes(draw.randint(1, 4000)) + b"\r\n\r\n"
    if kind == 2:
        return post(run, b'{"q', 1000)
    if kind == 3:
        queries = [{"subject": "", "relation": ""}] * draw.choice([10, 40_000, 250_000])
        return post(run, json.dumps({"queries": queries}).encode())
    whole = bytearray(post(run, b'{"queries":[{"subject":"a","relation":"uncle_of"}],"top":3}'))
    for _ in range(draw.randint(1, 4)):
        whole[draw.randrange(len(whole))] = draw.randrange(256)
    return bytes(whole)


def live_body(run: str, draw: random.Random) -> bytes:
    """A fact or a verdict that is broken or much too much; to a server that is read-only, a request that it refuses."""
    fact = {"subject": "a", "relation": "uncle_of", "object": draw.choice(["", "b", "\x1b[2J", "x" * 5000, 7])}
    fact |= draw.choice([{}, {"confidence": -1}, {"verdict": "maybe"}, {"verdict": "undo", "who": "a b"}, {"source": "\x00"}])
    whole = bytearray("\n".join([json.dumps(fact)] * draw.choice([1, 3, 100_001])).encode())
    if draw.random() < 0.5:
        whole[draw.randrange(len(whole))] = draw.randrange(256)
    return post(run, bytes(whole), None, draw.choice(["live/facts", "live/verdicts", "live/reload"]))


def attack(port: int, pid: int, run: str, draw: random.Random) -> str:
    """Sends hostile requests on many connections at once; what went wrong, or an empty text."""
    before, began = resident_mb(pid), time.monotonic()
    while status_in_time(port, "/readyz") != 200:
        if time.monotonic() - began > 60:
            return "is never ready"
        time.sleep(0.05)
    clients = []
    for _ in range(draw.randint(10, 40)):
        client = connect(port)
        client.settimeout(0.5)
        try:
            client.sendall(hostile(run, draw))
        except OSError:
            pass  # It was refused before it was sent whole.
        clients.append(client)
    seen, grown = status_in_time(port, f"/api/v1/{run}/rules?head=uncle_of"), resident_mb(pid) - before
    for client in clients:
        client.close()
    if seen not in (200, 503):
        return f"others get status {seen}"
    if grown > MOST_MB:
        return f"memory grew by {grown:.0f} MB"
    if status_in_time(port, "/healthz") != 200:
        return "does not answer any more"
    return ""
