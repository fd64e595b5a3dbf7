#!/bin/sh
# Measures loading against Polars and DuckDB in one go: ./benches/load.sh
# Needs Python 3 with venv, PyPI (the first time) and about 1.5 GB of disk under target/.
set -eu
cd "$(dirname "$0")/.."
if [ ! -x .venv/bin/python ]; then
    python3 -m venv .venv
fi
.venv/bin/python -c 'import polars, duckdb' 2>/dev/null ||
    .venv/bin/pip install --quiet 'polars==2.1.0' 'duckdb==2.0.0'
.venv/bin/python -c 'import polars, duckdb; print("polars", polars.__version__, "duckdb", duckdb.__version__)'
LOAD_PEERS_PYTHON="$PWD/.venv/bin/python" cargo bench --quiet --bench load
