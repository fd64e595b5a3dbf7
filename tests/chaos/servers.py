"""Attacks on servers: hostile HTTP, kills under writes, damaged logs and tokens, and an endpoint that we read from."""

import http.client
import json
import os
import sqlite3
import threading
import time

import endpoint
import http_attacks
from world import Chaos, Failure, Server


def attack_server(chaos: Chaos) -> str:
    """Odd and hostile requests: the server answers others, and its memory does not grow. Half of the servers take facts."""
    live = chaos.random.random() < 0.5
    clear_live(chaos)
    with Server(chaos, "run", "--in-flight-mb", "32", "--timeout-s", "5", *(["--live", "live.db"] if live else [])) as server:
        wrong = http_attacks.attack(server.port, server.process.pid, "run", chaos.random)
    if wrong:
        raise Failure(f"serve: {wrong}")
    return "serve"


def ask(port: int, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
    """A request to a server, and its answer; one that has no time for it is asked again."""
    for _ in range(10):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request(method, f"/api/v1/run/{path}", body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            status, said = answer.status, answer.read()
        finally:
            connection.close()
        # What is written is not written twice: a busy server has begun nothing, but one that was too slow may have.
        if status != 503 and not (status == 504 and method == "GET"):
            break
        time.sleep(1)
    return status, said


def clear_live(chaos: Chaos) -> None:
    for path in chaos.folder.glob("live.db*"):
        path.unlink()


def write_live(chaos: Chaos) -> list[dict]:
    """Writes requests to a server until it is killed at a random moment; the log of a next server has every request that
    was answered, whole, and no part of any other. Returns the log."""
    answered, sent = [], []
    with Server(chaos, "run", "--live", "live.db", "--quiet") as server:
        port, until = server.port, chaos.random.randint(3, 15)
        killer = threading.Timer(0.05 + 0.5 * chaos.random.random(), server.process.kill)
        for number in range(1000):
            if number == until:
                killer.start()
            facts = [{"subject": f"n{number}", "relation": "uncle_of", "object": f"m{at}"} for at in range(chaos.random.choice([1, 20]))]
            sent.append(len(facts))
            try:
                status, _ = ask(port, "POST", "live/facts", "\n".join(map(json.dumps, facts)))
            except (OSError, http.client.HTTPException):
                break
            if status != 200:
                raise Failure(f"live: status {status}")
            answered.append(len(facts))
    with Server(chaos, "run", "--live", "live.db", "--quiet") as server:
        port, log, after = server.port, [], 0
        while page := json.loads(ask(port, "GET", f"live/changes?limit=1000&after={after}")[1])["items"]:
            log, after = log + page, page[-1]["seq"]
    kept = len(log)
    if kept not in (sum(answered), sum(sent)):
        raise Failure(f"live: {kept} entries are left of {sum(answered)} that were answered and {sum(sent)} that were sent")
    return log


def kill_live(chaos: Chaos) -> str:
    """Kills under writes lose nothing that was answered, and keep no request in part."""
    clear_live(chaos)
    write_live(chaos)
    return "live"


def damage_live(chaos: Chaos) -> str:
    """A log with flipped bits, or cut off, is exported, served and learnt from, or refused."""
    path = chaos.folder / "live.db"
    clear_live(chaos)
    write_live(chaos)
    # All of it into the one file.
    log = sqlite3.connect(path)
    log.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    log.close()
    path.write_bytes(chaos.damaged(path.read_bytes()))
    chaos.run("live", "export", "live.db", "--format", chaos.random.choice(["tsv", "jsonl", "rdf"]))
    with Server(chaos, "run", "--live", "live.db", "--quiet") as server:
        answers = bool(server.line)
        if answers:
            try:
                status = ask(server.port, "GET", "live/changes")[0]
            except (OSError, http.client.HTTPException):
                # It may end where it reads the log, in a sentence, which is looked for below.
                status, answers = (500, False) if server.process.wait(timeout=60) == 2 else (-1, True)
            if status not in (200, 500, 503):
                raise Failure(f"live: status {status} from a damaged log")
    if not (answers or server.said.strip()):
        raise Failure("live: refused without a word")
    return "live"


def damage_tokens(chaos: Chaos) -> str:
    """A damaged file of tokens is refused, or the tokens in it that are whole allow what they did, and no more."""
    clear_live(chaos)
    path = chaos.folder / "tokens"
    path.unlink(missing_ok=True)
    chaos.done("live", "token", "ada", "--role", "read", "--tokens", "tokens")
    path.write_bytes(chaos.damaged(path.read_bytes()))
    with Server(chaos, "run", "--live", "live.db", "--tokens", "tokens", "--quiet") as server:
        if server.line and ask(server.port, "GET", "live")[0] != 401:
            raise Failure("tokens: a stranger is let in")
    if not (server.line or server.said.strip()):
        raise Failure("tokens: refused without a word")
    return "tokens"


def kill_reader(chaos: Chaos) -> str:
    """A process that reads a SPARQL endpoint page by page is killed between pages, the endpoint stumbles, too; in the end
    the same graph has come as without that, and what had come was not asked for again."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(chaos.folder / f"cache-{chaos.random.random()}")}
    with endpoint.Endpoint(chaos.random) as server:
        command = ["stats", f"sparql+http://127.0.0.1:{server.port}/query", "--json", "--quiet"]
        kills = chaos.random.randint(1, 3)
        for _ in range(kills):
            server.hold_after(chaos.random.randint(1, endpoint.REQUESTS - 1))
            child = chaos.spawn(*command, environment=environment)
            while child.poll() is None and not server.held.wait(0.01):
                pass
            child.kill()
            child.communicate()
            server.release()
        code, said, err = chaos.ended(chaos.spawn(*command, environment=environment))
        if code != 0:
            raise Failure(f"sparql: exit code {code}: {err[-300:]}")
        told = json.loads(said)
        facts = told["train"] + told["valid"] + told["test"]
        if (facts, told["entities"]) != (server.facts, server.entities):
            raise Failure(f"sparql: {facts} facts of {server.facts}, {told['entities']} entities of {server.entities}")
        # A page may be lost that was sent when its reader was killed.
        again = len(server.answered) - len(set(server.answered))
        if again > kills:
            raise Failure(f"sparql: {again} pages were asked for again after {kills} kills")
    return "sparql"
