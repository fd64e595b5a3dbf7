#!/usr/bin/env bash
# Whether two builds come to the same results, bit for bit: the demonstration run, UMLS, a WN18RR row on two epochs,
# rule files, predictions, explanations.
#
#   benches/identical.sh make BINARY DATA_ROOT OUT    # everything by one build; prints a checksum a file
#   benches/identical.sh compare OUT_A OUT_B          # exit 1 and the names of what differs
#
# Times and memory are left out of the JSON files. The same machine has to make both: the last digits of a sum depend on
# the width of its registers. Weights are compared as bytes.
set -euo pipefail

plain() { # JSON without what a clock or a place decides
    python3 -c '
import json, sys
CLOCK = {"probability", "device_memory_mb", "epoch_seconds", "seconds", "peak_memory_mb", "cpu_seconds", "training_seconds", "skipped", "version"}
def clean(x):
    if isinstance(x, dict): return {k: clean(v) for k, v in x.items() if k not in CLOCK}
    if isinstance(x, list): return [clean(v) for v in x]
    return x
for line in sys.stdin.read().splitlines() if sys.argv[1] == "lines" else [sys.stdin.read()]:
    if line.strip(): print(json.dumps(clean(json.loads(line)), sort_keys=True))
' "$1"
}

weights() { # the checksum of a file of weights without its header, in which seconds stand
    python3 -c '
import hashlib, struct, sys
bytes = open(sys.argv[1], "rb").read()
print(hashlib.sha256(bytes[8 + struct.unpack("<Q", bytes[:8])[0]:]).hexdigest())' "$1"
}

ask() { # BINARY RUN OUT QUERIES: everything that can be asked of a run
    local tool=$1 run=$2 out=$3 queries=$4
    "$tool" predict "$run" --file "$queries" --top 5 --json --quiet --threads 2 | plain lines > "$out.predict.jsonl"
    head -n 5 "$queries" | while IFS=$'\t' read -r subject relation; do
        "$tool" predict "$run" "$subject" "$relation" --json --quiet | plain whole || true
        object=$("$tool" predict "$run" "$subject" "$relation" --json --quiet | python3 -c '
import json, sys
answers = json.load(sys.stdin)["answers"]
print(answers[min(2, len(answers) - 1)]["entity"] if answers else "")' || true)
        [ -z "$object" ] || "$tool" explain "$run" "$subject" "$relation" "$object" --json --quiet | plain whole
    done > "$out.explain.json"
    "$tool" evaluate "$run" --split valid --direction both --json --quiet | plain whole > "$out.valid.json" || true
    "$tool" evaluate "$run" --direction both --json --quiet | plain whole > "$out.both.json"
    plain whole < "$run/results.json" > "$out.results.json"
    for file in rules.tsv embedding.safetensors walker.safetensors pretrained.safetensors blend.json; do
        [ ! -f "$run/$file" ] || sha256sum < "$run/$file" > "$out.$file.sum"
    done
}

make_all() {
    local tool=$1 data=$2 out=$3
    rm -rf "$out" && mkdir -p "$out/runs"
    "$tool" run --out "$out/runs/demonstration" --seed 1 --quiet > "$out/demonstration.txt"
    sed -i -E 's/[0-9.]+ s(, [0-9]+ MB)?//g; s/[0-9.]+ s;/s;/' "$out/demonstration.txt"
    sed -i "s#$out##g" "$out/demonstration.txt"
    local demo="$out/demonstration.queries"
    python3 - "$out/runs/demonstration/results.json" > "$demo" <<'PY'
import json, sys
for example in json.load(open(sys.argv[1]))["examples"]:
    print(example["answer"]["from_id"], example["relation"], sep="\t")
PY
    ask "$tool" "$out/runs/demonstration" "$out/demonstration" "$demo"
    "$tool" run "$data/umls" --config umls/blend --out "$out/runs/umls" --seed 3 --quiet --set rules.samples=20000 \
        --set embed.epochs=10 --set walk.epochs=2 --set walk.pretrain_epochs=1 > /dev/null
    head -n 200 "$data/umls/test.txt" | cut -f1,2 > "$out/umls.queries"
    ask "$tool" "$out/runs/umls" "$out/umls" "$out/umls.queries"
    "$tool" run "$data/wn18rr" --config wn18rr/ruleguider-complex --out "$out/runs/wn18rr" --seed 2 --quiet \
        --set rules.samples=20000 --set embed.epochs=1 --set walk.pretrain_epochs=0.1 --set walk.epochs=1 \
        --set walk.dimension=32 --set walk.history=32 --set embed.dimension=32 --set walk.rollouts=5 > /dev/null
    head -n 100 "$data/wn18rr/test.txt" | cut -f1,2 > "$out/wn18rr.queries"
    ask "$tool" "$out/runs/wn18rr" "$out/wn18rr" "$out/wn18rr.queries"
    "$tool" mine "$data/wn18rr" --samples 50000 --types cyclic,acyclic,zero --keep adding --out "$out/wn18rr.rules" --quiet > /dev/null
    "$tool" apply "$data/wn18rr" --rules "$out/wn18rr.rules" --predictions "$out/wn18rr.predictions" --json --quiet \
        | plain whole > "$out/wn18rr.apply.json"
    for model in complex conve distmult rotate; do
        "$tool" embed "$data/umls" --model "$model" --out "$out/umls.$model.safetensors" --seed 1 --set epochs=3 --json --quiet \
            | plain whole > "$out/umls.$model.json"
        weights "$out/umls.$model.safetensors" > "$out/umls.$model.weights.sum"
    done
    rm -rf "$out"/runs "$out"/*.safetensors "$out"/*.training
    (cd "$out" && sha256sum -- *)
}

case ${1:-} in
    make) make_all "$2" "$3" "$4" ;;
    compare) diff -rq "$2" "$3" && echo "identical: $(ls "$2" | wc -l) files" ;;
    *) sed -n '2,9p' "$0" >&2; exit 2 ;;
esac
