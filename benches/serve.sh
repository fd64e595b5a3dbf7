#!/usr/bin/env bash
# Load on `ruleguider serve`: queries a second over keep-alive beside `predict --file` on the same run, 1,000 connections,
# latency at half of the peak, and memory over ten minutes of mixed load. Needs wrk (Debian: apt-get install wrk) and curl.
#
#   benches/serve.sh [RUN] [SECONDS]      RUN: a run directory; the demonstration's is learnt where none is given
#   SOAK=10 benches/serve.sh              ten minutes of mixed load at the end
#   TOOL=target/fast/ruleguider benches/serve.sh      another build
#
# Server and client share the machine's cores, so the figures are below what a client elsewhere would see.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${TOOL:-}" ]; then
    cargo build --release --quiet
    TOOL="$PWD/target/release/ruleguider"
fi
work="$PWD/target/bench-data/serve"
run="${1:-$work/demonstration}"
seconds="${2:-20}"
mkdir -p "$work"
[ -d "$run" ] || "$TOOL" run --quiet --out "$run" > /dev/null
name="$(basename "$run")"

# An address that an earlier bench left would be taken for this one's.
rm -f "$work/address"
"$TOOL" serve "$run" --bind 127.0.0.1:0 --waiting 2000 > "$work/address" &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
until [ -s "$work/address" ]; do kill -0 $server; sleep 0.1; done
at="$(head -n 1 "$work/address")"
until curl -sf "${at}readyz" > /dev/null; do sleep 0.1; done

# The queries of both contestants: every relation of the run asked of its most linked entities. The mixed load asks for
# completions, entities, rules and explanations as well.
python3 - "$at" "$name" "$work" << 'PYTHON'
import json, sys, urllib.parse, urllib.request
at, name, work = sys.argv[1:]
base = f"/api/v1/{name}/"
path = lambda route, **query: base + route + "?" + urllib.parse.urlencode(query)
get = lambda route, **query: json.load(urllib.request.urlopen(at.rstrip("/") + path(route, **query)))
entities = [item["id"] for item in get("complete", kind="entity", limit=500)["items"]]
relations = [item["id"] for item in get("complete", kind="relation", limit=20)["items"]]
pairs = [(entity, relation) for entity in entities for relation in relations][:5000]
with open(f"{work}/queries.tsv", "w") as file:
    file.writelines(f"{entity}\t{relation}\n" for entity, relation in pairs)
asked = [path("predict", subject=entity, relation=relation) for entity, relation in pairs]
mixed = []
for i, (entity, relation) in enumerate(pairs):
    other = entities[i % len(entities)]
    mixed += [asked[i], asked[-i], path("complete", q=entity[:3]), path("entity", id=other),
              path("rules", head=relation), path("explain", subject=entity, relation=relation, object=other)]
for file, paths in (("ask", asked), ("mixed", mixed[:12000])):
    with open(f"{work}/{file}.lua", "w") as out:
        listed = ",\n".join(json.dumps(one) for one in paths)
        out.write(f"local paths = {{\n{listed}\n}}\nlocal at = 0\nlocal wait = tonumber(os.getenv('DELAY') or 0)\n"
                  "request = function()\n  at = at % #paths + 1\n  return wrk.format('GET', paths[at])\nend\n"
                  "if wait > 0 then delay = function() return math.random(0, 2 * wait) end end\n")
PYTHON

rss() { awk '/VmRSS/ { printf "%.1f", $2 / 1024 }' "/proc/$server/status"; }
load() { wrk --latency --timeout 20s -t "$1" -c "$2" -d "$3s" -s "$work/$4.lua" "$at" 2>&1; }
# Requests that were not answered with 200, and those that were lost: connect, read, write, timeout.
row() {
    awk -v what="$1" '/Requests\/sec/ { rate = $2 } /50%/ { half = $2 } /99%/ { most = $2 } /Non-2xx/ { other = $NF }
        /Socket errors/ { gsub(/[^0-9 ]/, ""); lost = $1 + $2 + $3 + $4 }
        END { print "| " what " | " rate " | " half " | " most " | " other + 0 " | " lost + 0 " |" }'
}

lines="$(wc -l < "$work/queries.tsv")"
file() { # seconds of `predict --file` over the first so many queries
    head -n "$1" "$work/queries.tsv" > "$work/part.tsv"
    local began; began="$(date +%s.%N)"
    "$TOOL" predict "$run" --file "$work/part.tsv" --quiet > /dev/null
    awk -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { print b - a }'
}
# Opening the run is not asking: what one query takes is taken off.
opening="$(file 1)"
whole="$(file "$lines")"
echo "predict --file: $lines queries, $(awk -v n="$lines" -v a="$opening" -v b="$whole" 'BEGIN { printf "%.0f", n / (b - a) }') queries/s"
echo "| connections | requests/s | median | 99 % | not 200 | lost |"
echo "|---|---|---|---|---|---|"
peak=0
for connections in 1 2 16 64 256 1000; do
    line="$(load "$((connections < 2 ? 1 : 2))" "$connections" "$seconds" ask | row "$connections")"
    echo "$line"
    peak="$(awk -v line="$line" -v peak="$peak" 'BEGIN { split(line, part, "|"); print (part[3] + 0 > peak) ? part[3] + 0 : peak }')"
done
for connections in 64 1000; do
    wait="$(awk -v c="$connections" -v peak="$peak" 'BEGIN { printf "%d", 1000 * c / (peak / 2) }')"
    DELAY="$wait" load 2 "$connections" "$seconds" ask | row "$connections, at half of the peak"
done
echo "memory: $(rss) MB"
if [ "${SOAK:-0}" -gt 0 ]; then
    echo "| minute of mixed load | requests/s | median | 99 % | not 200 | lost | memory, MB |"
    echo "|---|---|---|---|---|---|---|"
    for minute in $(seq "$SOAK"); do
        echo "$(load 2 32 60 mixed | row "$minute") $(rss) |"
    done
fi
kill -TERM "$server"
wait "$server" && echo "ended with exit code 0"
trap - EXIT
