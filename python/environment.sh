#!/usr/bin/env bash
# Makes target/venv, the environment of the Python package's tests, where it is not there or lacks something. If it cannot be
# made, prints what is missing (python, pypi), a tab and why, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() {
    printf "%s\t%s\n" "$1" "$2"
    exit 1
}

python="${PYTHON:-python3}"
new_enough='import sys; sys.exit(sys.version_info < (3, 10))'
command -v "$python" > /dev/null || missing python "there is no $python"
"$python" -c "$new_enough" || missing python "$python is older than 3.10"

venv="$PWD/target/venv"
if ! [ -x "$venv/bin/pip" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv" > /dev/null 2>&1 || missing python "$python has no venv (Debian's package python3-venv)"
fi
needed=$("$venv/bin/python" - <<'END'
import re
text = open("python/pyproject.toml").read()
listed = lambda name: re.findall(r'"([^"]+)"', re.search(rf"^{name} = \[(.*?)\]", text, re.M | re.S).group(1))
print("\n".join(listed("dependencies") + listed("test")))
END
)
stamp="$venv/needed.txt"
if ! [ -f "$stamp" ] || [ "$(cat "$stamp")" != "$needed" ]; then
    echo "$needed" | xargs -d '\n' "$venv/bin/pip" install --quiet --disable-pip-version-check >&2 \
        || missing pypi "its packages cannot be installed"
    echo "$needed" > "$stamp"
fi

# Ray is not to be had for every Python and machine; its tests say so.
"$venv/bin/python" -c 'import ray' > /dev/null 2>&1 || "$venv/bin/pip" install --quiet --disable-pip-version-check "ray>=2.9" >&2 \
    || echo "Ray cannot be installed; its tests are skipped" >&2

# Those that the examples for experiment trackers need.
"$venv/bin/python" -c 'import mlflow, tensorboard, wandb' > /dev/null 2>&1 \
    || "$venv/bin/pip" install --quiet --disable-pip-version-check mlflow-skinny tensorboard wandb >&2 \
    || echo "experiment trackers cannot be installed; their examples are not tested" >&2

# The files of PyKEEN's small data sets, which are read as they are published; without torch, which it needs to run.
[ -d target/pykeen ] || "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target target/pykeen pykeen >&2 \
    || echo "PyKEEN's data sets cannot be had; they are not read" >&2
