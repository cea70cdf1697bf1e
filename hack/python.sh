#!/usr/bin/env bash
# Checks the Python package: style, types, tests, and that its wheels install in a fresh environment, with the program.
# It needs build/stallspan and build/stallspan-nocgo. PYTHON is the interpreter; Debian's own has PyTorch. Nothing is
# downloaded.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-/usr/bin/python3}
export PYTHONDONTWRITEBYTECODE=1

has() { "$python" -c "import $1" 2>/dev/null || { echo "skipped: needs $2"; false; }; }

if has flake8 flake8; then (cd python && "$python" -m flake8 --max-line-length 120 . ../examples); fi
if has mypy mypy; then (cd python && "$python" -m mypy --cache-dir ../build/mypy .); fi

mkdir -p build/python
log=build/python/tests.log
(cd python && PYTHONPATH=src "$python" -W error::ResourceWarning -m unittest -v) >"$log" 2>&1 || { cat "$log"; exit 1; }
sed -nE "s/.* \.\.\. skipped ['\"](.*)['\"]$/skipped: \1/p" "$log"
tail -n 3 "$log"

has setuptools,wheel,venv,ensurepip 'python3-setuptools, python3-wheel and python3-venv' || exit 0
rm -rf build/python
mkdir -p build/python
hack/wheels.sh build/python/dist build/stallspan build/stallspan-nocgo
cd build/python

# takes checks which wheel pip chooses on a machine with one of the platforms that follow, the best first.
takes() {
	local want=$1 got platforms=()
	shift
	for platform; do platforms+=(--platform "${platform}_$(uname -m)"); done
	got=$("$python" -m pip download --quiet --disable-pip-version-check --no-index --find-links dist --no-deps \
		--only-binary=:all: --dest taken "${platforms[@]}" stallspan 2>&1 && cd taken && echo ./*.whl)
	rm -rf taken
	[[ $got == ./stallspan-*-py3-none-$want ]] || { echo "got $got for $*, want $want" >&2; exit 1; }
}
old='manylinux2014_*'
takes "$old" manylinux_2_{31,30,29,28,27,26,25,24,23,22,21,20,19,18,17}
takes "$old" manylinux2014
takes "$old" musllinux_1_1

"$python" -m venv environment
install() { environment/bin/pip install --quiet --no-index --disable-pip-version-check --find-links dist "$@"; }
install --only-binary=:all: stallspan
environment/bin/python -I - <<'CHECK'
import importlib.metadata
import stallspan

names = {str(f) for f in importlib.metadata.files("stallspan")}
missing = {"stallspan/py.typed", "stallspan/lightning.py", "../../../bin/stallspan"} - names
assert not missing, "the wheel lacks %s" % missing
assert not any("tests" in n for n in names), "the wheel has tests"
assert importlib.metadata.version("stallspan") == stallspan.__version__, "the versions differ"
with stallspan.epoch(1):
    pass
CHECK

# The command is the program itself, with no Python before it: signals and exit codes are the program's.
cmp environment/bin/stallspan ../stallspan
environment/bin/stallspan --version
[[ $(environment/bin/stallspan --version) == "$(../stallspan --version)" ]]
code=0
# shellcheck disable=SC2016 # the inner shell's parent
environment/bin/stallspan run -- sh -c 'kill -TERM $PPID; sleep 30' >/dev/null 2>&1 || code=$?
((code == 143)) || { echo "got the exit code $code of run after SIGTERM, want 143" >&2; exit 1; }
environment/bin/pip uninstall --quiet --yes stallspan
[[ ! -e environment/bin/stallspan ]] || { echo 'got a command after pip uninstall, want none' >&2; exit 1; }

# Where no wheel fits, the package comes without the command.
PYTHONPATH=$("$python" -c 'import setuptools, os; print(os.path.dirname(os.path.dirname(setuptools.__file__)))') \
	install --no-cache-dir --no-binary=:all: --no-build-isolation stallspan
environment/bin/python -I -c 'import stallspan'
[[ ! -e environment/bin/stallspan ]] || { echo 'got a command from the sdist, want none' >&2; exit 1; }
ls dist
