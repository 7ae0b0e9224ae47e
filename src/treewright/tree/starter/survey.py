"""A survey of a repository: its tests, its sweep, its results, its metrics, its tunable files.

All findings are guesses that end up in a commented file for the user to check, so a plain rule that
is easy to predict is better than a clever one.
"""

from __future__ import annotations

import ast
import csv
import fnmatch
import math
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Literal

from treewright.tree.repository.git import git

_CONTRACT = ("config_id", "status")
_ROWS_LOOKED_AT = 1000
# fmt: off
_MORE_IS_BETTER = frozenset({
    "acc", "accuracy", "auc", "bleu", "coverage", "f1", "fps", "hits", "map", "ndcg", "passed",
    "precision", "profit", "proved", "qps", "r2", "recall", "return", "reward", "rouge", "score",
    "sharpe", "solved", "speedup", "throughput", "wins",
})
# fmt: on


SWEEP = "treewright_sweep.py"
"""The name of a sweep that `init` writes."""
_SWEEP_STEMS = (
    "sweep", "run_sweep", "benchmark", "bench", "evaluate", "evaluator", "eval", "run_eval",
    "measure", "score", "experiment",
)  # fmt: skip
_JUDGING_WORDS = frozenset({
    "bench", "benchmark", "eval", "evaluate", "evaluation", "evaluator", "grade", "grader",
    "harness", "judge", "measure", "metric", "metrics", "oracle", "score", "scorer", "scoring",
    "sweep", "validate", "validator", "verifier", "verify",
})  # fmt: skip
"""A file with one of these words in its name measures: it is protected and never mutated."""
_CODE = frozenset({".py", ".sh", ".js", ".ts", ".rb", ".pl", ".r", ".jl", ".lua", ".awk"})
_SCRIPT_RUNNERS = {".py": "", ".sh": "sh"}
_TEST_DIRECTORIES = ("tests", "test")
_DATA_DIRECTORIES = ("data", "datasets", "fixtures")
_NOT_TUNABLE = frozenset(
    {"setup.py", "conftest.py", "noxfile.py", "docs", "examples", "scripts", "benchmarks", "tools"}
)
_LARGEST_TEXT = 1 << 20
_CLOCK_NAME = re.compile(
    r"(?:\w+_)?(?:(?:time|clock|wall|training)_?(?:budget|limit)|max_(?:seconds|minutes|time)"
    r"|(?:seconds|minutes)_(?:budget|limit)|(?:budget|limit)_(?:seconds|minutes))(?:_\w+)?",
    re.IGNORECASE,
)
"""Names of constants that limit the time of a program."""


@dataclass(frozen=True, slots=True)
class Column:
    """A metric; the direction is guessed from its name."""

    name: str

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        words = re.split(r"[^a-z0-9]+", self.name.lower())
        return "maximize" if _MORE_IS_BETTER & set(words) else "minimize"


def columns_of_csv(path: Path) -> list[Column]:
    """Return the columns that hold finite numbers.

    A column of whole numbers is more often a setting of the config (a size, a horizon) than a
    measurement, so such columns are returned only if there are no others.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            rows = list(islice(reader, _ROWS_LOOKED_AT))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    measured, whole = [], []
    for at, name in enumerate(header):
        values = [row[at].strip() for row in rows if at < len(row) and row[at].strip()]
        if not name or name in _CONTRACT or not values or not all(map(_is_finite, values)):
            continue
        (whole if all(_is_whole(value) for value in values) else measured).append(Column(name))
    return measured or whole


def columns_of_script(source: str) -> list[Column]:
    """Return the columns of a list of names, or a header line, with `config_id` and `status`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    for names in _name_lists(tree):
        if set(_CONTRACT) <= set(names):
            return [Column(name) for name in names if name and name not in _CONTRACT]
    return []


def _name_lists(tree: ast.AST) -> Iterator[list[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield [name.strip() for name in node.value.strip().split(",")]
        elif isinstance(node, ast.List | ast.Tuple):
            values = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            yield [value for value in values if isinstance(value, str)]


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None


@dataclass(frozen=True, slots=True)
class Survey:
    """The findings. None and empty values are for the user to fill in."""

    tests_command: str | None
    sweep_command: str | None
    sweep_script: str | None
    not_sweeps: list[str]
    """Scripts that are called like a sweep but write no results."""
    finds_candidate: bool
    """Whether the sweep can run from another checkout than the candidate's."""
    results_csv: str | None
    columns: list[Column]
    idea_directory: str | None
    tunable: list[str]
    """Patterns for the `mutate` idea source."""
    protected: list[str]
    clocks: dict[str, float]
    """Tunable files with a constant such as TIME_BUDGET, and its value in seconds."""


def survey(repo: Path) -> Survey:
    """Return the findings about a repository; nothing in it is run or changed."""
    files = list_files(repo)
    script, not_sweeps = _sweep_script(repo, files)
    results = _results_csv(repo, files)
    columns = columns_of_csv(repo / results) if results else []
    if not columns and script and script.endswith(".py"):
        columns = columns_of_script(_text(repo, script))
    prefix = _import_prefix(files)
    tests = _tests_command(repo, files, prefix)
    ideas = "ideas" if _has(files, "ideas", ".md") else None
    tunable = _tunable(files, script)
    return Survey(
        tests_command=tests,
        sweep_command=run_script(script, prefix) if script else None,
        sweep_script=script,
        not_sweeps=not_sweeps,
        finds_candidate=script is not None and "TREEWRIGHT_CANDIDATE" in _text(repo, script),
        results_csv=results,
        columns=columns,
        idea_directory=ideas,
        tunable=tunable,
        protected=_protected(repo, files, [script] if script else not_sweeps, ideas),
        clocks={
            path: seconds
            for path in files
            if any(fnmatch.fnmatchcase(path, pattern.replace("/**/", "/")) for pattern in tunable)
            and (seconds := time_budget(_text(repo, path)))
        },
    )


def list_files(repo: Path) -> list[str]:
    """Return the files that are tracked or would be after `git add --all`."""
    listed = git(repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return sorted({path for path in listed.split("\0") if path and (repo / path).is_file()})


def _sweep_script(repo: Path, files: list[str]) -> tuple[str | None, list[str]]:
    """Return the script that writes results, and those that are only called like one.

    A script that names TREEWRIGHT_RESULTS_CSV is the sweep; or else one with a telling name that
    writes the contract's column `config_id`, itself or in a file that it names or imports.
    """
    scripts = [f for f in files if PurePosixPath(f).suffix in _SCRIPT_RUNNERS and not _is_test(f)]
    scripts.sort(key=lambda f: (f.count("/"), f))
    for path in scripts:
        if "TREEWRIGHT_RESULTS_CSV" in _text(repo, path):
            return path, []
    named = [
        path
        for stem in _SWEEP_STEMS
        for path in scripts
        if PurePosixPath(path).stem == stem and path.count("/") <= 1
    ]
    writes = next((path for path in named if _writes_results(repo, files, path)), None)
    return writes, [path for path in named if path != writes] if writes is None else []


def _writes_results(repo: Path, files: list[str], script: str) -> bool:
    text = _text(repo, script)
    words = set(re.findall(r"[\w./-]+", text))
    stems = {word.rpartition(".")[2] for word in words}
    used: list[str] = []
    for path in files:
        pure = PurePosixPath(path)
        is_named = path in words or pure.name in words or pure.stem in stems
        if is_named and pure.suffix in _CODE and path != script and not _is_test(path):
            used.append(path)
    return "config_id" in text or any(
        "config_id" in each or "TREEWRIGHT_RESULTS_CSV" in each
        for each in (_text(repo, path) for path in used)
    )


def _results_csv(repo: Path, files: list[str]) -> str | None:
    """Return a CSV with `config_id` and `status`, first one that is called a baseline."""
    found = [f for f in files if f.endswith(".csv") and _has_contract_header(repo / f)]
    return min(found, key=lambda f: ("baseline" not in f, f.count("/"), f), default=None)


def _has_contract_header(path: Path) -> bool:
    with path.open("rb") as file:
        names = file.readline(1 << 16).decode("utf-8-sig", "replace").strip().split(",")
    return {"config_id", "status"} <= {name.strip() for name in names}


def _import_prefix(files: list[str]) -> str:
    """Return the variable that makes Python import the candidate's package, or ""."""
    if any(f.startswith("src/") and f.endswith("/__init__.py") for f in files):
        return "PYTHONPATH=src "
    if _packages(files):
        return "PYTHONPATH=. "
    return ""


def _packages(files: list[str]) -> list[str]:
    """Return the top-level importable packages, in `src/` or in the root."""
    inits = [PurePosixPath(f).parent for f in files if PurePosixPath(f).name == "__init__.py"]
    tops = [p for p in inits if len(p.parts) == 1 or (len(p.parts) == 2 and p.parts[0] == "src")]
    return sorted(
        str(p) for p in tops if p.name not in _TEST_DIRECTORIES and p.parts[0] not in _NOT_TUNABLE
    )


def run_script(script: str, prefix: str) -> str:
    """Return the command for a script.

    A sweep that `init` wrote runs without this checkout in Python's path.
    """
    if script.endswith(".py"):
        isolated = " -I" if PurePosixPath(script).name == SWEEP else ""
        return f"{prefix}{python_name()}{isolated} {shlex.quote(script)}"
    return f"{_SCRIPT_RUNNERS[PurePosixPath(script).suffix]} {shlex.quote(script)}"


def _tests_command(repo: Path, files: list[str], prefix: str) -> str | None:
    python_tests = [f for f in files if _is_test(f) and f.endswith(".py")]
    if python_tests:
        if _uses_pytest(repo, files, python_tests):
            return f"{prefix}{python_name()} -m pytest -q"
        return f"{prefix}{python_name()} -m unittest{_discovering(files, python_tests)} -q"
    if "package.json" in files and '"test"' in _text(repo, "package.json"):
        return "npm test"
    if "Cargo.toml" in files:
        return "cargo test --quiet"
    if "go.mod" in files:
        return "go test ./..."
    if "Makefile" in files and "\ntest:" in "\n" + _text(repo, "Makefile"):
        return "make test"
    return None


def _discovering(files: list[str], tests: list[str]) -> str:
    """Return the option by which unittest finds tests that are in no package."""
    places = {str(PurePosixPath(test).parent) for test in tests}
    place = min(places)
    if len(places) > 1 or place == "." or f"{place}/__init__.py" in files:
        return ""
    return f" discover -s {shlex.quote(place)}"


def _uses_pytest(repo: Path, files: list[str], tests: list[str]) -> bool:
    settings = ("pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py")
    if any(name in files for name in settings):
        return True
    places = ("pyproject.toml", "setup.cfg", "tox.ini", *tests)
    if any("pytest" in _text(repo, name) for name in places if name in files):
        return True
    return not any("unittest" in _text(repo, name) for name in tests)


def _tunable(files: list[str], script: str | None) -> list[str]:
    """Return patterns for the packages, or else the top-level modules."""
    packages = _packages(files)
    if packages:
        return [f"{package}/**/*.py" for package in packages]
    return [
        f
        for f in files
        if f.endswith(".py")
        and "/" not in f
        and not _is_test(f)
        and f != script
        and f not in _NOT_TUNABLE
        and not _is_judge(f)
    ]


def _is_judge(path: str) -> bool:
    pure = PurePosixPath(path)
    words = re.split(r"[^a-z0-9]+", pure.stem.lower())
    return pure.suffix.lower() in _CODE and not _JUDGING_WORDS.isdisjoint(words)


def _protected(repo: Path, files: list[str], scripts: list[str], ideas: str | None) -> list[str]:
    """Return the files that decide: the sweep, its data, the tests and their settings."""
    directories = [d for d in (*_TEST_DIRECTORIES, *_DATA_DIRECTORIES) if _has(files, d, "")]
    single = [f for f in files if _is_test(f) and f.split("/")[0] not in directories]
    settings = [f for f in ("conftest.py", "pytest.ini", "tox.ini", ".gitignore") if f in files]
    if "pyproject.toml" in files and "[tool.pytest" in _text(repo, "pyproject.toml"):
        settings.append("pyproject.toml")
    judges = [f for f in files if _is_judge(f) and f.split("/")[0] not in directories]
    reads = [f for script in scripts for f in _read_by(repo, files, script)]
    reads = [f for f in reads if f.split("/")[0] not in directories]
    found = [*scripts, *judges, *reads, *directories, *single, *settings, ideas]
    return list(dict.fromkeys(path for path in found if path))


def _read_by(repo: Path, files: list[str], script: str) -> list[str]:
    """Return the files other than code that the sweep names: configs, expected answers, data.

    Names are looked up in the root, where the sweep runs, and in the directory of the sweep.
    """
    names = set(re.findall(r"""["']([^"'\n]{1,200})["']""", _text(repo, script)))
    beside = PurePosixPath(script).parent
    known = {f for f in files if PurePosixPath(f).suffix.lower() not in _CODE}
    found = {str(place / name) for name in names for place in (PurePosixPath("."), beside)}
    return sorted(found & known)


def _is_test(path: str) -> bool:
    pure = PurePosixPath(path)
    if any(part in _TEST_DIRECTORIES for part in pure.parts[:-1]):
        return True
    return pure.suffix == ".py" and (pure.name.startswith("test_") or pure.stem.endswith("_test"))


def _has(files: list[str], directory: str, suffix: str) -> bool:
    return any(f.startswith(f"{directory}/") and f.endswith(suffix) for f in files)


def python_name() -> str:
    """Return the command that starts Python here."""
    return "python" if shutil.which("python") else "python3"


def _text(repo: Path, path: str) -> str:
    with (repo / path).open("rb") as file:
        return file.read(_LARGEST_TEXT).decode("utf-8", "replace")


def time_budget(source: str) -> float | None:
    """Return the seconds that a constant such as TIME_BUDGET gives a program; None without one."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        names = [name for name in names if _CLOCK_NAME.fullmatch(name)]
        amount = _product(node.value)
        if names and amount:
            return 60 * amount if "minute" in names[0].lower() else amount
    return None


def _product(value: ast.expr) -> float | None:
    """Return a number, also one that is written as `5 * 60`."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return float(value.value)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        left, right = _product(value.left), _product(value.right)
        return None if left is None or right is None else left * right
    return None
