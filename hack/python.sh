#!/usr/bin/env bash
# Checks the Python package: style, types, tests, and that its wheel installs in a fresh environment. It needs
# build/stallspan for some of the tests. PYTHON is the interpreter; Debian's own has PyTorch. Nothing is downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1

has() { "$python" -c "import $1" 2>/dev/null || { echo "skipped: $2 is not installed" >&2; false; }; }

if has flake8 flake8; then (cd python && "$python" -m flake8 --max-line-length 120 . ../examples); fi
if has mypy mypy; then (cd python && "$python" -m mypy --cache-dir ../build/mypy .); fi

(cd python && PYTHONPATH=src "$python" -W error::ResourceWarning -m unittest)

has setuptools,wheel,venv,ensurepip 'one of python3-setuptools, python3-wheel, python3-venv' || exit 0
rm -rf build/python
mkdir -p build/python/{tree,unpacked,dist}
cp -r LICENSE python/{pyproject.toml,README.md,src} build/python/tree
(cd build/python/tree && "$python" -W ignore -c 'import setuptools.build_meta as b; b.build_sdist("../dist")' >/dev/null)
# The wheel is made from the sdist, so nothing is missing there.
tar -xzf build/python/dist/*.tar.gz -C build/python/unpacked --strip-components 1
(cd build/python/unpacked && "$python" -W ignore -c 'import setuptools.build_meta as b; b.build_wheel("../dist")' >/dev/null)
"$python" -m venv build/python/environment
build/python/environment/bin/pip install --quiet --no-index --disable-pip-version-check build/python/dist/*.whl
cd build/python
environment/bin/python -I - <<'CHECK'
import importlib.metadata
import stallspan

names = {str(f) for f in importlib.metadata.files("stallspan")}
missing = {"stallspan/py.typed", "stallspan/lightning.py"} - names
assert not missing, "the wheel lacks %s" % missing
assert not any("tests" in n for n in names), "the wheel has tests"
assert importlib.metadata.version("stallspan") == stallspan.__version__, "the versions differ"
with stallspan.epoch(1):
    pass
CHECK
ls dist
