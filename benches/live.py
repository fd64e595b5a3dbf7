"""Writing to a served run: facts a second, how long a verdict and an answer take, before and after many changes.

    python3 benches/live.py RUN RELATION [--facts 100000] [--existing 0.1] [--command target/release/ruleguider]

Starts a server on a log of its own. Facts come in requests of 1,000; a share of them (--existing) is about entities that
the run has, the others about new ones; relations and objects are those of the run, drawn evenly. Every request is answered when it is on the disk. "To the next answer" is the
time from sending a verdict until a question that was sent after it is answered: the served model is made again meanwhile.
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
    return f"median {statistics.median(ordered):.2f} ms, 95th percentile {ordered[int(0.95 * len(ordered))]:.2f} ms"


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

        def answers() -> list[float]:
            asked, times = random.Random(2), []
            for number in range(given.queries + 20):
                path = f"{api}/predict?subject={quote(asked.choice(names))}&relation={quote(relation)}"
                began = time.perf_counter()
                server.done("GET", path)
                times.append(time.perf_counter() - began)
            return times[20:]

        def to_the_next_answer() -> list[float]:
            times = []
            for _ in range(20):
                fact = {"subject": draw.choice(names), "relation": relation, "object": draw.choice(names), "verdict": "reject"}
                began = time.perf_counter()
                server.done("POST", f"{api}/live/verdicts", json.dumps(fact))
                server.done("GET", f"{api}/predict?subject={quote(names[0])}&relation={quote(relation)}")
                times.append(time.perf_counter() - began)
            return times

        def verdicts() -> list[float]:
            times = []
            for _ in range(200):
                fact = {"subject": draw.choice(names), "relation": relation, "object": draw.choice(names), "verdict": "reject"}
                began = time.perf_counter()
                server.done("POST", f"{api}/live/verdicts", json.dumps(fact))
                times.append(time.perf_counter() - began)
            return times

        print(f"{server.run['entities']} entities, {server.run['facts']} facts, {server.run['rules']} rules")
        print("answer without changes:", timed(answers()))
        print("verdict:", timed(verdicts()))
        cpu = server.cpu_seconds()
        times = to_the_next_answer()
        print(f"to the next answer: {timed(times)}; {1000 * (server.cpu_seconds() - cpu) / len(times):.0f} ms of processor time each")
        began = time.perf_counter()
        for _ in range(given.facts // 1000):
            lines = (json.dumps(new_fact()) for _ in range(1000))
            server.done("POST", f"{api}/live/facts", "\n".join(lines))
        seconds = time.perf_counter() - began
        print(f"facts: {given.facts / seconds:.0f} a second, in {given.facts // 1000} requests of 1,000")
        began = time.perf_counter()
        server.done("GET", f"{api}/predict?subject={quote(names[0])}&relation={quote(relation)}")
        print(f"all of them are in the next answer, which takes {time.perf_counter() - began:.2f} s")
        print(f"answer with {given.facts} changes:", timed(answers()))
        print("verdict:", timed(verdicts()))
        cpu = server.cpu_seconds()
        times = to_the_next_answer()
        print(f"to the next answer: {timed(times)}; {1000 * (server.cpu_seconds() - cpu) / len(times):.0f} ms of processor time each")
        server.end()


if __name__ == "__main__":
    main()
