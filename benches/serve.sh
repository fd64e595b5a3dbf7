#!/usr/bin/env bash
# Load on `ruleguider serve`: queries a second over keep-alive beside `predict --file` on the same run, latency at half of
# the peak, 1,000 connections, and memory over ten minutes of mixed load. Needs wrk (Debian: apt-get install wrk) and curl.
#
#   benches/serve.sh [RUN] [SECONDS]      RUN: a run directory; the demonstration's is learnt where none is given
#
# Server and client share the machine's cores, so the figures are below what a client elsewhere would see.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
tool="$PWD/target/release/ruleguider"
work="$PWD/target/bench-data/serve"
run="${1:-$work/demonstration}"
seconds="${2:-20}"
mkdir -p "$work"
[ -d "$run" ] || "$tool" run --quiet --out "$run" > /dev/null
name="$(basename "$run")"

"$tool" serve "$run" --bind 127.0.0.1:0 > "$work/address" &
server=$!
trap 'kill $server 2> /dev/null || true' EXIT
until [ -s "$work/address" ]; do sleep 0.1; done
at="$(head -n 1 "$work/address")"
until curl -sf "${at}readyz" > /dev/null; do sleep 0.1; done

# The queries of both contestants: every relation of the run asked of its most linked entities.
python3 - "$at" "$name" "$work" << 'PYTHON'
import json, sys, urllib.parse, urllib.request
at, name, work = sys.argv[1:]
get = lambda route, **query: json.load(urllib.request.urlopen(f"{at}api/v1/{name}/{route}?" + urllib.parse.urlencode(query)))
entities = [item["id"] for item in get("complete", kind="entity", limit=500)["items"]]
relations = [item["id"] for item in get("complete", kind="relation", limit=20)["items"]]
pairs = [(entity, relation) for entity in entities for relation in relations][:5000]
with open(f"{work}/queries.tsv", "w") as file:
    file.writelines(f"{entity}\t{relation}\n" for entity, relation in pairs)
with open(f"{work}/ask.lua", "w") as file:
    paths = ",\n".join(json.dumps(f"/api/v1/{name}/predict?" + urllib.parse.urlencode({"subject": entity, "relation": relation})) for entity, relation in pairs)
    file.write(f"local paths = {{\n{paths}\n}}\nlocal at = 0\nrequest = function()\n  at = at % #paths + 1\n  return wrk.format(\"GET\", paths[at])\nend\n")
PYTHON

rss() { awk '/VmRSS/ { print $2 / 1024 }' "/proc/$server/status"; }
load() { wrk --latency -t "$1" -c "$2" -d "$3s" -s "$work/ask.lua" "$at" 2>&1; }
row() { awk -v what="$1" '/Requests\/sec/ { rate = $2 } /50%/ { half = $2 } /99%/ { most = $2 } /Non-2xx/ { other = $NF } END { print "| " what " | " rate " | " half " | " most " | " other + 0 " |" }'; }

lines="$(wc -l < "$work/queries.tsv")"
began="$(date +%s.%N)"
"$tool" predict "$run" --file "$work/queries.tsv" --quiet > /dev/null
echo "predict --file: $lines queries, $(awk -v n="$lines" -v a="$began" -v b="$(date +%s.%N)" 'BEGIN { printf "%.0f", n / (b - a) }') queries/s, opening the run included"
echo "| connections | requests/s | median | 99 % | not 200 |"
echo "|---|---|---|---|---|"
for connections in 1 2 16 64 256 1000; do
    load "$((connections < 2 ? 1 : 2))" "$connections" "$seconds" | row "$connections"
done
echo "memory: $(rss) MB"
if [ "${SOAK:-0}" -gt 0 ]; then
    for minute in $(seq "$SOAK"); do
        load 2 32 60 > /dev/null
        echo "after $minute min: $(rss) MB"
    done
fi
