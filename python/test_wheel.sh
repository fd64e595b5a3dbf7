#!/usr/bin/env bash
# A wheel in bare virtual environments: test_wheel.sh [--tests] WHEEL [PYTHON…]. No Rust is on the path; a script asks and the
# command runs. With --tests the tests of the package run too, beside nothing but the wheel and what they need from the index.
set -euo pipefail
tests=
if [ "$1" = --tests ]; then
    tests=1
    shift
fi
wheel=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 - "$wheel" "$here" <<'END'
import pathlib, sys, zipfile
wheel, root = zipfile.ZipFile(sys.argv[1]), pathlib.Path(sys.argv[2])
texts = {name.rsplit("/", 1)[-1]: wheel.read(name) for name in wheel.namelist() if ".dist-info/licenses/" in name}
for name in ("LICENSE-MIT", "LICENSE-APACHE"):
    assert texts.get(name) == (root / name).read_bytes(), f"the wheel lacks {name}"
assert any(name.endswith("ruleguider/py.typed") for name in wheel.namelist()), "the wheel lacks py.typed"
END
for python in "${@:-python3}"; do
    "$python" -m venv "$folder/venv"
    bin="$folder/venv/bin"
    "$bin/pip" install --quiet --disable-pip-version-check "$wheel"
    (
        cd "$folder"
        export PATH="$bin:/usr/bin:/bin"
        "$bin/python" - <<'END'
import sys
import ruleguider as rg
model = rg.learn(out="run", config={"system": "rules", "rules.samples": 2000}, progress=False)
query = model.graph.triples("test")[0]
subject, relation = model.graph.entities[query[0]], model.graph.relations[query[1]]
print(sys.version.split()[0], model, len(model.predict(subject, relation)), "answers")
END
        ruleguider --version
    )
    if [ -n "$tests" ]; then
        "$bin/pip" install --quiet --disable-pip-version-check "${wheel}[test]"
        # Without the sources of the package, which would be imported instead. The types of the sources are another test.
        mkdir -p "$folder/copy/python" "$folder/copy/examples"
        cp "$here"/LICENSE-* "$folder/copy"
        (cd "$here/python" && cp -r tests backend conftest.py pyproject.toml LICENSE-* "$folder/copy/python")
        (cd "$here/examples" && cp -r ./*.ipynb python "$folder/copy/examples")
        (
            cd "$folder/copy/python"
            export PATH="$bin:/usr/bin:/bin"
            unset PYTHONPATH RULEGUIDER_SKIPPED
            "$bin/python" -m pytest -q -p no:cacheprovider tests --ignore tests/test_stubs.py
        )
    fi
    rm -rf "$folder/venv" "$folder/run" "$folder/copy"
done
