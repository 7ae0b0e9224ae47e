"""The web application: the handler of each address."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from treewright.dashboard import (
    assets,
    compare_view,
    orchestrator_view,
    tree_detail,
)
from treewright.dashboard.change_stream import Changes
from treewright.dashboard.guard import Access, Guard
from treewright.dashboard.roots import Roots, RunRef, parse_number
from treewright.dashboard.summaries import Summaries

_ITEM_LENGTH = 64
_JSON = "application/json"


class _RootIndex(Convertor[int]):
    """A number in an address. The `int` of Starlette fails on very long numbers."""

    regex = "[0-9]{1,9}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("root_index", _RootIndex())


def make_app(roots: Roots, access: Access) -> ASGIApp:
    """Return the application behind its guard."""
    pages = _Pages(roots)
    run = "{root:root_index}/{run_id}"
    routes = [
        Route("/", pages.page("home.html")),
        Route(f"/tree/{run}", pages.page("tree.html")),
        Route(f"/proof/{run}", pages.page("proof.html")),
        Route(f"/experiment/{run}", pages.page("experiment.html")),
        Route(f"/experiment/{run}/{{cell}}", pages.page("proof.html")),
        Route(f"/bank/{run}", pages.page("bank.html")),
        Route("/compare", pages.page("compare.html")),
        Route("/static/{name}", pages.asset),
        Route("/api/runs", pages.runs),
        Route("/api/changes", pages.changes),
        Route(f"/api/tree/{run}", pages.tree),
        Route(f"/api/tree/{run}/item/{{item}}", pages.item),
        Route(f"/api/tree/{run}/diff/{{item}}", pages.diff),
        Route(f"/api/tree/{run}/log/{{item}}/{{name}}", pages.log),
        Route(f"/api/proof/{run}", pages.proof),
        Route(f"/api/experiment/{run}", pages.experiment),
        Route(f"/api/experiment/{run}/{{cell}}", pages.proof),
        Route(f"/api/bank/{run}", pages.bank),
        Route("/api/compare", pages.compare),
        Route("/api/stats", pages.stats),
        Route("/api/marketplace", pages.marketplace),
        Route("/api/health", pages.health),
    ]
    return Guard(Starlette(routes=routes), access)


class _Pages:
    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._summaries = Summaries(roots)
        self._trees = self._summaries.trees
        self._proofs = self._summaries.proofs
        self._changes = Changes(roots, self._summaries.forget)

    def page(self, name: str) -> Any:
        async def show(request: Request) -> Response:
            return _asset(request, name)

        return show

    async def asset(self, request: Request) -> Response:
        return _asset(request, request.path_params["name"])

    async def runs(self, _: Request) -> Response:
        return _json(await self._summaries.all_runs())

    async def changes(self, request: Request) -> Response:
        if self._changes.full:
            return PlainTextResponse("too many listeners; poll instead\n", 503)
        stream = self._changes.stream(request.query_params.get("run"))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def tree(self, request: Request) -> Response:
        """Return the run's summary, and the rows that changed since the version `since`."""
        run = self._find(request, "tree")
        if run is None:
            return _absent()
        since = request.query_params.get("since")
        rows = self._trees.find_cached(run, since)
        if rows is None:
            rows = await run_in_threadpool(self._trees.tree, run, since)
        summary = await self._summaries.of(run)
        return _json({"run": summary, "tree": msgspec.Raw(rows)})

    async def item(self, request: Request) -> Response:
        def make(run: RunRef) -> Any:
            with self._trees.manifest(run) as manifest:
                return manifest and tree_detail.describe_item(run.path, manifest, _item(request))

        return await self._of_tree(request, make)

    async def diff(self, request: Request) -> Response:
        against = "root" if request.query_params.get("against") == "root" else "parent"

        def make(run: RunRef) -> Any:
            with self._trees.manifest(run) as manifest:
                found = manifest and tree_detail.find_commits(manifest, _item(request))
            if not found:
                return tree_detail.Diff(problem="this item has no commit yet")
            return tree_detail.diff_commits(run.project, found[against], found["own"])

        return await self._of_tree(request, make)

    async def log(self, request: Request) -> Response:
        offset = request.query_params.get("offset", "-1")
        found = parse_number(offset)
        start = -1 if found is None else found

        def make(run: RunRef) -> Any:
            with self._trees.manifest(run) as manifest:
                name = request.path_params["name"]
                return manifest and tree_detail.read_log(
                    run.path, manifest, _item(request), name, start
                )

        return await self._of_tree(request, make)

    async def proof(self, request: Request) -> Response:
        run = self._find_proof(request)
        if run is None:
            return _absent()
        live = await run_in_threadpool(self._proofs.open, run)
        records = live.records_since(request.query_params.get("since"))
        return _json({"run": await self._summaries.of(run), "trace": records})

    async def experiment(self, request: Request) -> Response:
        run = self._find(request, "experiment")
        if run is None:
            return _absent()
        return _json(await run_in_threadpool(self._summaries.experiments.overview, run))

    async def bank(self, request: Request) -> Response:
        run = self._find(request, "bank")
        if run is None:
            return _absent()
        return _json(await run_in_threadpool(orchestrator_view.overview, run))

    async def compare(self, request: Request) -> Response:
        """Compare the runs that the parameter `run` names, in that order."""
        found = [self._roots.find_key(key) for key in request.query_params.getlist("run")]
        runs = [run for run in found if run is not None]
        if len(runs) < len(found):
            return _absent()
        return _json(await run_in_threadpool(compare_view.describe, runs))

    async def stats(self, _: Request) -> Response:
        return _json(await run_in_threadpool(orchestrator_view.stats, self._ledger()))

    async def marketplace(self, _: Request) -> Response:
        return _json(await run_in_threadpool(orchestrator_view.marketplace, self._ledger()))

    async def health(self, _: Request) -> Response:
        return _json(await run_in_threadpool(orchestrator_view.health, self._ledger()))

    async def _of_tree(self, request: Request, make: Any) -> Response:
        run = self._find(request, "tree")
        answer = await run_in_threadpool(make, run) if run is not None else None
        return _absent() if answer is None else _json(answer)

    def _find(self, request: Request, kind: str) -> RunRef | None:
        return self._roots.find(kind, request.path_params["root"], request.path_params["run_id"])

    def _find_proof(self, request: Request) -> RunRef | None:
        """Return a single proof run, or one of an experiment's grid."""
        cell = request.path_params.get("cell")
        if cell is None:
            return self._find(request, "proof")
        return self._roots.find_cell(
            request.path_params["root"], request.path_params["run_id"], cell
        )

    def _ledger(self) -> RunRef | None:
        return next((run for run in self._roots.scan() if run.kind == "bank"), None)


def _item(request: Request) -> str:
    return request.path_params["item"][:_ITEM_LENGTH]


def _asset(request: Request, name: str) -> Response:
    found = assets.all_assets().get(name)
    if found is None:
        return _absent()
    headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, headers={**headers, "Content-Type": found.type})


def _json(document: object) -> Response:
    body = msgspec.json.encode(document)
    return Response(body, media_type=_JSON, headers={"Cache-Control": "no-store"})


def _absent() -> Response:
    return PlainTextResponse("not found\n", 404)
