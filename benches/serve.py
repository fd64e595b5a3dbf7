#!/usr/bin/env python3
"""Load on `ruleguider serve`, beside `predict --file` with the same queries on the same run.

    benches/serve.py [RUN]                     the demonstration is learnt where no run is given
    benches/serve.py RUN --soak 10             ten minutes of mixed load instead
    benches/serve.py RUN --tool target/fast/ruleguider --rounds 3 --seconds 5

Needs wrk (Debian: apt-get install wrk). Both contestants answer the same queries with ten answers and their reasons as
JSON; they take turns, round by round, and a ratio is that of one round. Server and client share the machine's cores:
what the client alone costs is seen where it asks for something trivial. Where others use the machine too, the CPU
seconds of a question say more than the clock.
"""

import argparse, http.client, json, os, random, re, resource, shutil, socket, statistics, struct, subprocess
import tempfile, threading, time, urllib.parse

# What a contestant did: questions a second and CPU microseconds a question, of itself and of the client.
FIELDS = ("rate", "own", "client", "median", "most", "refused", "lost")


class Server:
    """A server of its own, until it is closed."""

    def __init__(self, tool, run, *arguments):
        self.process = subprocess.Popen([tool, "serve", run, "--bind", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, text=True)
        self.at = self.process.stdout.readline().strip()
        self.host = self.at.split("/")[2]
        while self.get("/readyz")[0] != 200:
            time.sleep(0.1)

    def get(self, path):
        connection = http.client.HTTPConnection(self.host)
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.read()

    def json(self, path):
        return json.loads(self.get(path)[1])

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024

    def answered(self):
        """How many requests were answered, by status."""
        counted = {}
        for status, count in re.findall(r'requests_total\{.*status="(\d+)"\} (\d+)', self.get("/metrics")[1].decode()):
            counted[status] = counted.get(status, 0) + int(count)
        return counted

    def close(self):
        self.process.terminate()
        return self.process.wait()


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scripts(server, name, work):
    """Writes what is asked: `queries.tsv` and, for wrk, a script each for predictions, mixed load and a trivial route."""
    path = lambda route, **query: f"/api/v1/{name}/{route}?" + urllib.parse.urlencode(query)
    entities = [item["id"] for item in server.json(path("complete", kind="entity", limit=500))["items"]]
    relations = [item["id"] for item in server.json(path("complete", kind="relation", limit=20))["items"]]
    pairs = [(entity, relation) for entity in entities for relation in relations][:5000]
    with open(f"{work}/queries.tsv", "w") as file:
        file.writelines(f"{entity}\t{relation}\n" for entity, relation in pairs)
    asked = [path("predict", subject=entity, relation=relation) for entity, relation in pairs]
    files = ["/", "/style.css", "/app/main.js", "/app/draw.js", "/api/openapi.json", "/metrics"]
    mixed = []
    for i, (entity, relation) in enumerate(pairs):
        other = entities[(7 * i + 1) % len(entities)]
        mixed += [asked[i], asked[-i], files[i % len(files)], path("complete", q=entity[:1 + i % 5]),
                  path("complete", q=relation[:3] + "x", kind="relation"), path("entity", id=other), path("rules", head=relation),
                  path("explain", subject=entity, relation=relation, object=other),
                  path("reasons", subject=entity, relation=relation, object=other)]
    random.Random(1).shuffle(mixed)
    for script, paths in (("ask", asked), ("mixed", mixed[:20000]), ("trivial", ["/healthz"])):
        listed = ",\n".join(json.dumps(one) for one in paths)
        with open(f"{work}/{script}.lua", "w") as out:
            out.write(f"local paths = {{\n{listed}\n}}\nlocal at = 0\nlocal wait = tonumber(os.getenv('DELAY') or 0)\n"
                      "request = function()\n  at = at % #paths + 1\n  return wrk.format('GET', paths[at])\nend\n"
                      "if wait > 0 then delay = function() return math.random(0, 2 * wait) end end\n")
    return pairs, asked


def milliseconds(text):
    """What wrk writes as `8.02ms`; it writes something else where nothing was answered."""
    said = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text)
    return float(said[1]) * {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}[said[2]] if said else float("nan")


def load(server, work, script, connections, seconds, delay=0):
    """What wrk measures, and what it costs."""
    server_before, client_before = server.cpu(), children()
    said = subprocess.run(["wrk", "--latency", "--timeout", "30s", "-t", str(min(connections, 2)), "-c", str(connections), "-d", f"{seconds}s",
                           "-s", f"{work}/{script}.lua", server.at], capture_output=True, text=True, check=True,
                          env={**os.environ, "DELAY": str(delay)}).stdout
    count = int(re.search(r"(\d+) requests in", said)[1])
    micro = lambda spent: 1e6 * spent / max(count, 1)
    found = lambda pattern: (re.search(pattern, said) or [0, "0"])[1]
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    return dict(zip(FIELDS, (float(found(r"Requests/sec:\s+([\d.]+)")), micro(server.cpu() - server_before), micro(children() - client_before),
                             milliseconds(found(r"\n\s+50%\s+(\S+)")), milliseconds(found(r"\n\s+99%\s+(\S+)")), int(found(r"Non-2xx.*: (\d+)")),
                             sum(map(int, errors.groups())) if errors else 0)))


def by_file(tool, run, queries):
    """`predict --file` over `queries`, without what opening the run takes."""
    def once(lines):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.writelines(lines)
            file.flush()
            began, before = time.monotonic(), children()
            subprocess.run([tool, "predict", run, "--file", file.name, "--quiet"], stdout=subprocess.DEVNULL, check=True)
            return time.monotonic() - began, children() - before
    (opening, spent), (whole, all_spent) = once(queries[:1]), once(queries)
    count = len(queries) - 1
    return {"rate": count / (whole - opening), "own": 1e6 * (all_spent - spent) / count}


def row(what, cells):
    print("| " + " | ".join([what, *cells]) + " |", flush=True)


def measured(server, work, args, queries):
    """The tables: each number of connections beside `predict --file`, then half of the peak."""
    files, loads = [], {connections: [] for connections in args.connections}
    for _ in range(args.rounds):
        files.append(by_file(args.tool, args.run, queries))
        for connections, found in loads.items():
            found.append(load(server, work, "ask", connections, args.seconds))
    middle = lambda rows, field: statistics.median(one[field] for one in rows)
    print(f"predict --file: {middle(files, 'rate'):,.0f} queries/s, {middle(files, 'own'):,.0f} µs of CPU a query "
          f"(median of {args.rounds} rounds)\n")
    row("connections", ["requests/s", "of `--file`", "by CPU", "server, µs", "client, µs", "median, ms", "99 %, ms", "not 200", "lost"])
    row("---", ["---"] * 9)
    def write(what, found, beside):
        share = lambda ratio: f"{100 * statistics.median(map(ratio, zip(found, beside))):.0f} %" if beside else ""
        row(what, [f"{middle(found, 'rate'):,.0f}", share(lambda pair: pair[0]["rate"] / pair[1]["rate"]),
                   share(lambda pair: pair[1]["own"] / (pair[0]["own"] + pair[0]["client"])), f"{middle(found, 'own'):,.0f}",
                   f"{middle(found, 'client'):,.0f}", f"{middle(found, 'median'):.1f}", f"{middle(found, 'most'):.1f}",
                   str(sum(one["refused"] for one in found)), str(sum(one["lost"] for one in found))])
    for connections, found in loads.items():
        write(f"{connections:,}", found, files)
    peak = max(middle(found, "rate") for found in loads.values())
    for connections in (64, 1000):
        delay = round(1000 * connections / (peak / 2))
        write(f"{connections:,}, at half of the peak", [load(server, work, "ask", connections, args.seconds, delay)], [])
    write("256, `/healthz`", [load(server, work, "trivial", 256, args.seconds)], [])
    print(f"\nmemory: {server.megabytes():.0f} MB")


def refused(args, work):
    """1,000 connections at once where 512 questions may wait."""
    server = Server(args.tool, args.run)
    found = load(server, work, "ask", 1000, args.seconds)
    print(f"1,000 connections, default --waiting: answered by status {server.answered()}, {found['lost']} lost")
    server.close()


def killed(server, paths, stop, count):
    """Clients that ask and go away before they are answered."""
    draw = random.Random(2)
    while not stop.is_set():
        client = socket.create_connection(server.host.split(":"))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for _ in range(draw.randrange(1, 4)):
            client.sendall(f"GET {draw.choice(paths)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        time.sleep(draw.random() * 0.02)
        client.close()
        count[0] += 1
        time.sleep(draw.random() * 0.1)


def soaked(server, work, args, asked):
    """Minutes of mixed load, with clients that are killed meanwhile."""
    stop, count, memory = threading.Event(), [0], []
    killer = threading.Thread(target=killed, args=(server, asked, stop, count))
    killer.start()
    row("minute", ["requests/s", "median, ms", "99 %, ms", "not 200", "lost", "killed clients", "memory, MB"])
    row("---", ["---"] * 7)
    for minute in range(1, args.soak + 1):
        found = load(server, work, "mixed", 32, 60)
        memory.append(server.megabytes())
        row(str(minute), [f"{found['rate']:,.0f}", f"{found['median']:.1f}", f"{found['most']:.1f}", str(found["refused"]), str(found["lost"]),
                          str(count[0]), f"{memory[-1]:.1f}"])
    stop.set()
    killer.join()
    least, most = min(memory[1:] or memory), max(memory[1:] or memory)
    print(f"\nafter the first minute: {least:.1f} to {most:.1f} MB, ±{50 * (most - least) / ((most + least) / 2):.1f} %; by status {server.answered()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?")
    parser.add_argument("--tool", default="target/release/ruleguider")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8, help="of each load")
    parser.add_argument("--queries", type=int, default=20000, help="of predict --file")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64, 256, 1000])
    parser.add_argument("--soak", type=int, default=0, metavar="MINUTES")
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="ruleguider-serve-")
    if args.run is None:
        args.run = f"{work}/demonstration"
        subprocess.run([args.tool, "run", "--quiet", "--out", args.run], stdout=subprocess.DEVNULL, check=True)
    server = Server(args.tool, args.run, "--waiting", "2000")
    try:
        pairs, asked = scripts(server, server.json("/api/v1/runs")["runs"][0]["name"], work)
        lines = [f"{entity}\t{relation}\n" for entity, relation in pairs]
        # The same again and again; within a block of 2048 none comes twice.
        queries = (lines * (args.queries // len(lines) + 1))[:max(args.queries, 2)]
        soaked(server, work, args, asked) if args.soak else measured(server, work, args, queries)
        if not args.soak:
            refused(args, work)
    finally:
        print("ended with exit code", server.close())
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
