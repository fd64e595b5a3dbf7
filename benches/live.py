"""Writing to a served run: facts a second, how long a verdict and an answer take, before and after many changes.

    python3 benches/live.py RUN RELATION [--facts 100000] [--existing 0.1] [--command target/release/ruleguider]

Starts a server on a log of its own. Facts come in requests of 1,000; a share of them (--existing) is about entities that
the run has, the others about new ones; relations and objects are those of the run, drawn evenly. Every request is answered when it is on the disk. "To the next answer" is the
time from sending a verdict until a question that was sent after it is answered: the served model is made again meanwhile.
Processor time is that of the server, and does not depend on what else the machine does. Prints a table in Markdown.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from urllib.parse import quote, urlsplit


# The beginnings of names by which entities are listed.
STARTS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Server:
    def __init__(self, command: str, run: str, log: str) -> None:
        arguments = [command, "serve", run, "--live", log, "--bind", "127.0.0.1:0", "--quiet"]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
        self.connection = http.client.HTTPConnection(urlsplit(self.process.stdout.readline().strip()).netloc, timeout=120)
        while self.ask("GET", "/readyz")[0] != 200:
            time.sleep(0.05)
        self.run = json.loads(self.ask("GET", "/api/v1/runs")[1])["runs"][0]

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} if body else {}
        self.connection.request(method, path, body.encode() if body else None, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def done(self, method: str, path: str, body: str | None = None) -> dict:
        status, text = self.ask(method, path, body)
        assert status == 200, (status, text)
        return json.loads(text)

    def cpu_seconds(self) -> float:
        """The processor time of the server so far."""
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def timed(times: list[float]) -> str:
    ordered = sorted(1000 * one for one in times)
    return f"{statistics.median(ordered):.2f} ms | {ordered[int(0.95 * len(ordered))]:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("relation")
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--existing", type=float, default=0.1)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--command", default="target/release/ruleguider")
    given = parser.parse_args()
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.command, given.run, folder + "/live.db")
        api = f"/api/v1/{quote(server.run['name'])}"
        listed = (server.done("GET", f"{api}/suggest?limit=1000&{of}")["items"] for of in ["kind=relation"] + [f"kind=entity&q={at}" for at in STARTS])
        relations = [item["id"] for item in next(listed)]
        names = sorted({item["id"] for items in listed for item in items})
        relation = given.relation

        def new_fact() -> dict:
            subject = draw.choice(names) if draw.random() < given.existing else f"new {draw.randrange(10**6)}"
            return {"subject": subject, "relation": draw.choice(relations), "object": draw.choice(names)}

        def measured(name: str, ask, times: int, warm: int = 0) -> float:
            """Prints a row: wall time a request, the server's processor time; returns the median."""
            for _ in range(warm):
                ask()
            taken, cpu = [], server.cpu_seconds()
            for _ in range(times):
                began = time.perf_counter()
                ask()
                taken.append(time.perf_counter() - began)
            cpu = (server.cpu_seconds() - cpu) / times
            print(f"| {name} | {timed(taken)} | {1000 * cpu:.1f} ms |", flush=True)
            return statistics.median(taken)

        def answers(name: str) -> float:
            asked = random.Random(2)
            return measured(name, lambda: server.done("GET", f"{api}/predict?subject={quote(asked.choice(names))}&relation={quote(relation)}"), given.queries, 20)

        def next_answer() -> None:
            server.done("GET", f"{api}/predict?subject={quote(names[0])}&relation={quote(relation)}")

        def verdict() -> None:
            fact = {"subject": draw.choice(names), "relation": relation, "object": draw.choice(names), "verdict": "reject"}
            server.done("POST", f"{api}/live/verdicts", json.dumps(fact))

        def to_the_next_answer() -> None:
            verdict()
            next_answer()

        def thousand() -> None:
            server.done("POST", f"{api}/live/facts", "\n".join(json.dumps(new_fact()) for _ in range(1000)))

        run, facts = server.run, f"{given.facts:,}"
        print(f"{run['entities']:,} entities, {run['facts']:,} facts, {run['rules']:,} rules; --existing {given.existing:g}\n")
        print("| | median | 95 % below | processor |\n|---|---:|---:|---:|")
        before = answers("an answer, without changes")
        measured("a verdict, on the disk", verdict, 200)
        measured("a verdict, and the next answer", to_the_next_answer, 20)
        began = time.perf_counter()
        measured("a request of 1,000 facts, on the disk", thousand, given.facts // 1000)
        rate = given.facts / (time.perf_counter() - began)
        measured(f"the next answer after {facts} facts", next_answer, 1)
        after = answers(f"an answer, with {facts} changes")
        measured(f"a verdict with {facts} changes, on the disk", verdict, 200)
        measured(f"a verdict with {facts} changes, and the next answer", to_the_next_answer, 20)
        print(f"\n{rate:,.0f} facts a second; an answer takes {after / before:.2f} times as long with {facts} changes")
        server.end()


if __name__ == "__main__":
    main()
