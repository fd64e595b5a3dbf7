#!/bin/bash
# Measures the miner and the application of rules: ./benches/rules.sh [bars] [apply] [family]   (all without arguments)
#   bars    mines every benchmark graph for 10 and 100 seconds and ranks its test queries
#   apply   ranks both ends of every test triple with AnyBURL's rules (../shared/peers) and 17,000 of ours
#   family  mines a generated graph of ten million facts whose rules are known (1.2 GB of disk under target/)
# RULEGUIDER_DATA names the folder of the benchmark graphs, RULEGUIDER the program if it is not to be built.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${RULEGUIDER_DATA:-../shared/data}
peers=$data/../peers
out=target/bench-data/rules
mkdir -p "$out"
if [ -z "${RULEGUIDER:-}" ]; then
    cargo build --release --quiet --package ruleguider-cli
    RULEGUIDER=target/release/ruleguider
fi

# What is mined in a column of the table; long bodies only where the validation split gains by them.
options() { # DATA COLUMN
    case $2 in
        cyclic-10) echo --types cyclic --seconds 10 ;;
        cyclic-100) echo --types cyclic --seconds 100 ;;
        all-100)
            echo --types cyclic,acyclic,zero --seconds 100
            [ "$1" = wn18rr ] && echo --max-length 5
            ;;
    esac
}

bars() {
    echo '| graph | column | rules | mining, s | MB | MRR, noisy-or | MRR, max-plus | H@1 / H@10, noisy-or | apply, s |'
    echo '|---|---|---|---|---|---|---|---|---|'
    for graph in ${GRAPHS:-wn18rr nell-995 fb15k-237}; do
        for column in ${COLUMNS_WANTED:-cyclic-10 cyclic-100 all-100}; do
            rules=$out/$graph-$column.tsv
            # The options are words of their own.
            # shellcheck disable=SC2046
            mined=$("$RULEGUIDER" mine "$data/$graph" $(options "$graph" "$column" || true) --out "$rules" --json --quiet)
            began=$EPOCHREALTIME
            noisy=$("$RULEGUIDER" apply "$data/$graph" --rules "$rules" --json --quiet)
            ended=$EPOCHREALTIME
            plus=$("$RULEGUIDER" apply "$data/$graph" --rules "$rules" --aggregate maxplus --json --quiet)
            jq --null-input --raw-output --argjson mined "$mined" --argjson noisy "$noisy" --argjson plus "$plus" \
                --arg graph "$graph" --arg column "$column" --arg began "$began" --arg ended "$ended" '
                def round_to($n): . * $n | round / $n;
                "| \($graph) | \($column) | \($mined.rules) | \($mined.seconds | round_to(100)) | " +
                "\($mined.peak_memory_mb | round) | \($noisy.mrr | round_to(10000)) | \($plus.mrr | round_to(10000)) | " +
                "\($noisy["hits@1"] | round_to(10000)) / \($noisy["hits@10"] | round_to(10000)) | " +
                "\(($ended | tonumber) - ($began | tonumber) | round_to(100)) |"'
        done
    done
}

# Every n-th of our cyclic rules, so that broad and weak ones are among them as in any file: about 17,000.
thinned() {
    rules=$out/fb15k-237-cyclic-100.tsv
    [ -e "$rules" ] || rules=$out/fb15k-237-cyclic-10.tsv
    step=$(($(wc -l <"$rules") / 17000)); step=$((step > 0 ? step : 1))
    awk -v step="$step" 'NR % step == 0' "$rules" >"$out/fb15k-237-17000.tsv"
}

apply() {
    thinned
    echo '| graph, both directions | rules | wall, s, best of three | peak, MB |'
    echo '|---|---|---|---|'
    for pair in "wn18rr $peers/anyburl-wn18rr-cyclic-100s.tsv" "nell-995 $peers/anyburl-nell-995-cyclic-100s.tsv" \
        "fb15k-237 $out/fb15k-237-17000.tsv"; do
        read -r graph rules <<<"$pair"
        for _ in 1 2 3; do
            /usr/bin/time --format '%e %M' "$RULEGUIDER" apply "$data/$graph" --rules "$rules" --direction both \
                --aggregate maxplus --json --quiet 2>&1 >/dev/null
        done | sort -n | head -1 | while read -r seconds kilobytes; do
            echo "| $graph | $(wc -l <"$rules") | $seconds | $((kilobytes / 1000)) |"
        done
    done
}

# The planted confidences are those of the whole graph, so all of it is mined.
family() {
    made=$out/family whole=$out/family-whole
    if [ ! -e "$whole/train.tsv" ]; then
        "$RULEGUIDER" generate family --people 890000 --seed 1 --out "$made" --force --quiet
        mkdir -p "$whole"
        for split in valid test; do head -1 "$made/$split.tsv" >"$whole/$split.tsv"; done
        cat "$made/train.tsv" "$made/valid.tsv" "$made/test.tsv" >"$whole/train.tsv"
    fi
    echo "facts: $(wc -l <"$whole/train.tsv")"
    "$RULEGUIDER" mine "$whole" --seconds 300 --out "$out/family.tsv" --json --quiet
    awk -F '\t' '
        NR == FNR { found[$4] = $3; next }
        { planted++ }
        $4 in found { known++; apart = found[$4] - $3; if (apart < 0) apart = -apart; if (apart > worst) worst = apart }
        END { printf "planted rules: %d, found: %d, largest difference of a confidence: %.6f\n", planted, known, worst }
    ' "$out/family.tsv" "$made/planted_rules.tsv"
}

[ $# -gt 0 ] || set -- bars apply family
for part in "$@"; do "$part"; done
