#!/usr/bin/env bash
# The tests of the Python package: puts it into target/venv and runs pytest. Arguments go to pytest. Where there is no Python
# or its packages cannot be had, that is said in $RULEGUIDER_SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
    echo "the Python package is not tested: $1" >&2
    if [ -n "${RULEGUIDER_SKIPPED:-}" ]; then printf "%s\tthe Python package: %s\n" "${2:-python}" "$1" >> "$RULEGUIDER_SKIPPED"; fi
    exit 0
}

python="${PYTHON:-python3}"
new_enough='import sys; sys.exit(sys.version_info < (3, 10))'
command -v "$python" > /dev/null || skip "there is no $python"
"$python" -c "$new_enough" || skip "$python is older than 3.10"

venv="$PWD/target/venv"
if ! [ -x "$venv/bin/pip" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv" > /dev/null 2>&1 || skip "$python has no venv (Debian's package python3-venv)"
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
    # shellcheck disable=SC2086
    echo "$needed" | xargs -d '\n' "$venv/bin/pip" install --quiet --disable-pip-version-check || skip "its packages cannot be installed" pypi
    echo "$needed" > "$stamp"
fi

# Ray is not to be had for every Python and machine; its tests say so.
"$venv/bin/python" -c 'import ray' > /dev/null 2>&1 || "$venv/bin/pip" install --quiet --disable-pip-version-check "ray>=2.9" \
    || echo "Ray cannot be installed; its tests are skipped" >&2

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
