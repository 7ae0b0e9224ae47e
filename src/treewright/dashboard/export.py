"""Write a run as one HTML file: the dashboard's page with the answers of the server inside.

The data are JSON in a script element of type application/json, with `<` escaped so that no data can
end the element. A content security policy in the file allows only the file's script and style.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard import assets, proof_view, tree_detail
from treewright.dashboard.experiment_view import ExperimentLibrary
from treewright.dashboard.proof_view import ProofLibrary
from treewright.dashboard.roots import Roots, RunRef
from treewright.dashboard.tree_library import TreeLibrary
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage import atomic
from treewright.tree.records.model import Manifest

_MAX_DETAIL_BYTES = 24 << 20
"""Most bytes of details, because larger files open slowly. The tree itself is always complete."""


def find(run: str, project: Path) -> RunRef:
    """Return a run by its directory, or by its id in the project.

    Raises:
        UsageError: No run matches, or several do.
    """
    path = Path(run)
    if path.is_dir():
        found = Roots([path]).scan()
        if len(found) == 1 and found[0].kind != "bank":
            return found[0]
    else:
        found = [one for one in Roots([project]).scan() if one.run_id == run]
        if len(found) == 1 and found[0].kind != "bank":
            return found[0]
    if len(found) > 1:
        raise UsageError(f"{run} names {len(found)} runs; give the directory of one")
    raise UsageError(f"no run {run}; give the directory of a run, or its id in this project")


def write(run: RunRef, target: Path) -> tuple[int, int]:
    """Write the file. Return the number of entries, and the number of entries with details."""
    if run.kind == "tree":
        answers, counts = _tree(run)
    elif run.kind == "experiment":
        answers, counts = _experiment(run)
    else:
        answers, counts = _proof(run)
    page = _page(run.kind, run, answers)
    atomic.write_bytes(target, page.encode("utf-8", "replace"))
    return counts


def _tree(run: RunRef) -> tuple[dict[str, Any], tuple[int, int]]:
    library = TreeLibrary()
    api = f"/api/{run.key}"
    rows = msgspec.Raw(library.tree(run, None))
    summary = library.summary(run)
    if summary["problem"]:
        raise StorageError(f"{run.path}: {summary['problem']}")
    answers: dict[str, Any] = {api: {"run": summary, "tree": rows}}
    size = kept = 0
    with library.manifest(run) as manifest:
        assert manifest is not None
        items = [*manifest.nodes, *manifest.evaluations]
        for item in _by_interest(manifest, summary["best_path"]):
            found = _details(run, api, manifest, item)
            size += sum(len(msgspec.json.encode(answer)) for answer in found.values())
            if size > _MAX_DETAIL_BYTES:
                break
            answers |= found
            kept += 1
    return answers, (len(items), kept)


def _by_interest(manifest: Manifest, best_path: list[str]) -> Iterator[str]:
    """Yield the best path, then the other nodes, then the evaluations from the latest on."""
    yield from best_path
    yield from (node for node in manifest.nodes if node not in best_path)
    yield from reversed(manifest.evaluations)


def _details(run: RunRef, api: str, manifest: Manifest, item: str) -> dict[str, Any]:
    detail = tree_detail.describe_item(run.path, manifest, item)
    assert detail is not None
    found: dict[str, Any] = {f"{api}/item/{item}": detail}
    commits = tree_detail.find_commits(manifest, item) or {}
    for against in ("parent", "root") if commits else ():
        made = tree_detail.diff_commits(run.project, commits[against], commits["own"])
        found[f"{api}/diff/{item}?against={against}"] = made
    if item in manifest.evaluations:
        for log in detail["logs"]:
            piece = tree_detail.read_log(run.path, manifest, item, log["name"], -1)
            if piece is not None:
                found[f"{api}/log/{item}/{log['name']}?offset=-1"] = piece | {
                    "live": False,
                    "next": piece["size"],
                }
    return found


def _proof(run: RunRef) -> tuple[dict[str, Any], tuple[int, int]]:
    live = ProofLibrary().open(run)
    if live.problem:
        raise StorageError(f"{run.path}: {live.problem}")
    count = len(live.records)
    trace = {"version": "0", "full": True, "more": False, "records": live.records}
    answers = {f"/api/{run.key}": {"run": proof_view.summary(live), "trace": trace}}
    return answers, (count, count)


def _experiment(run: RunRef) -> tuple[dict[str, Any], tuple[int, int]]:
    found = ExperimentLibrary().overview(run)
    if found["run"]["problem"]:
        raise StorageError(found["run"]["problem"])
    return {f"/api/{run.key}": found}, (len(found["cells"]), len(found["cells"]))


def _page(kind: str, run: RunRef, answers: dict[str, Any]) -> str:
    content = {"key": run.key, "made_at": timestamp(), "answers": answers}
    data = msgspec.json.encode(content).decode("utf-8").replace("<", "\\u003c")
    files = assets.all_assets()
    script = files[f"{kind}.js"].body.decode("utf-8").replace("</script", "<\\/script")
    style = files["style.css"].body.decode("utf-8")
    allowed = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(allowed)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(run.run_id)} · Treewright</title>\n<style>{style}</style>\n</head>\n"
        '<body>\n<a class="skip" href="#main">Skip to the content</a>\n'
        '<header class="top" id="top"></header>\n<main id="main" tabindex="-1"></main>\n'
        f'<script type="application/json" id="carried">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
