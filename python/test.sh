#!/usr/bin/env bash
# The tests of the Python package: puts it into target/venv and runs pytest. Arguments go to pytest. Where there is no Python
# or its packages cannot be had, that is said in $RULEGUIDER_SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! missing=$(python/environment.sh); then
    echo "the Python package is not tested: ${missing#*	}" >&2
    if [ -n "${RULEGUIDER_SKIPPED:-}" ]; then
        printf "%s\tthe Python package: %s\n" "${missing%%	*}" "${missing#*	}" >> "$RULEGUIDER_SKIPPED"
    fi
    exit 0
fi
venv="$PWD/target/venv"

# Installed as `maturin develop` would, but built together with the workspace and its tests: cargo chooses the features of
# dependencies by what is built together, so that everything else would be built once more. python/test_wheel.sh installs
# what maturin builds.
cargo build --quiet --workspace --lib --tests
cp target/debug/lib_ruleguider.so python/ruleguider/_ruleguider.abi3.so
echo "$PWD/python" > "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ruleguider.pth"
printf '#!%s\nimport sys\nfrom ruleguider._command import main\nsys.exit(main())\n' "$venv/bin/python" > "$venv/bin/ruleguider"
chmod +x "$venv/bin/ruleguider"

export VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH"
unset PYTHONPATH
cd python
exec "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
