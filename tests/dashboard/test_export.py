"""Exports: whole, escaped, bounded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dashboard import proof_runs, samples
from tests.toy import ToyRepository
from treewright.dashboard import assets, export


def carried(file: Path) -> dict:
    text = file.read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="carried">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def test_a_tree_run_carries_every_answer(searched: ToyRepository, tmp_path: Path) -> None:
    run = export.find(samples.RUN_ID, searched.path)
    total, kept = export.write(run, tmp_path / "x.html")
    assert total == kept
    answers = carried(tmp_path / "x.html")["answers"]
    api = "/api/tree/0/run"
    for item in ("n0000", "n0001", "e000001"):
        assert f"{api}/item/{item}" in answers
    assert "+++ b/params.txt" in answers[f"{api}/diff/n0001?against=root"]["text"]
    assert f"{api}/log/e000001/sweep.log?offset=-1" in answers


def test_text_of_a_run_cannot_break_out_of_the_page(
    searched: ToyRepository, tmp_path: Path
) -> None:
    export.write(export.find(samples.RUN_ID, searched.path), tmp_path / "x.html")
    text = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "<script>window.hacked" not in text
    assert "window.hacked" in text, "but it is in the data"


def test_details_beyond_the_limit_are_left_out(
    searched: ToyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_MAX_DETAIL_BYTES", 30_000)
    run = export.find(samples.RUN_ID, searched.path)
    total, kept = export.write(run, tmp_path / "x.html")
    assert 0 < kept < total
    answers = carried(tmp_path / "x.html")["answers"]
    best = answers["/api/tree/0/run"]["run"]["best"]["node"]
    assert f"/api/tree/0/run/item/{best}" in answers, "the best path comes first"


def test_a_proof_run_is_exported(tmp_path: Path) -> None:
    run = proof_runs.solved(tmp_path)
    export.write(export.find(str(run.path), tmp_path), tmp_path / "x.html")
    (answer,) = carried(tmp_path / "x.html")["answers"].values()
    assert [record["type"] for record in answer["trace"]["records"]][-1] == "verdict"


def test_a_bundle_has_each_module_once() -> None:
    script = assets.all_assets()["tree.js"].body.decode()
    assert script.count("const module_dom = ") == 1
    assert not re.search(r"^(import|export)\b", script, re.M)


def test_a_module_that_cannot_be_bundled_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"odd\.js"):
        assets.bundle_script("odd.js", {"odd.js": 'import x from "./dom.js";\n'})


def test_modules_that_import_each_other_are_an_error() -> None:
    """A browser accepts such modules; bundled as one script they would fail."""
    modules = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;\n',
        "b.js": 'import { a } from "./a.js";\nexport const b = () => a;\n',
    }
    with pytest.raises(ValueError, match=r"a\.js imports itself through b\.js"):
        assets.bundle_script("a.js", modules)
