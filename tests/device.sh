#!/bin/bash
# The whole CUDA check, with binaries that were built elsewhere: for a machine with a GPU but without Rust.
#
#   tests/device.sh build DIR   here: builds the test and bench binaries and puts them, with the PyTorch peer, into DIR
#   DIR/device.sh check         there: every operation, CPU against CUDA, and everything else the tensor room promises
#   DIR/device.sh bench         there: both workloads, ours and PyTorch's
set -euo pipefail
case "${1:-}" in
build)
    cd "$(dirname "$0")/.."
    mkdir -p "$2"
    binary() { grep -o '"executable":"[^"]*"' | cut -d'"' -f4 | tail -1; }
    cp "$(cargo test --release --no-run --lib -p ruleguider --message-format=json | binary)" "$2/tensor-tests"
    cp "$(cargo bench --no-run --bench tensor --message-format=json | binary)" "$2/tensor-bench"
    cp tests/device.sh benches/peers/tensor_torch.py "$2/"
    strip "$2/tensor-tests" "$2/tensor-bench"
    ;;
check)
    cd "$(dirname "$0")"
    # One thread: the tests share the device, and their prints stay in order.
    ./tensor-tests tensor:: --test-threads 1 --nocapture
    ;;
bench)
    cd "$(dirname "$0")"
    ./tensor-bench --device cuda --steps 30
    ./tensor-bench --device cuda-exact --steps 30
    if python3 -c 'import torch' 2>/dev/null; then python3 tensor_torch.py --device cuda --steps 30; fi
    ;;
*)
    sed -n '2,7p' "$0"
    exit 2
    ;;
esac
