"""The replay check: the only code in treewright that may say "proved".

The original has a `sorry` in the theorem; the candidate has a proof in its place. Three Lean
processes work:

- The first process reads the candidate. Lean's parser applies `restrictions` to the text that the
  original does not have, before any of it is elaborated. The whole text must elaborate without an
  error that the original does not have. Its declarations are exported as terms.
- The second process reads the original and exports its declarations. No error of the original may
  concern a target or a declaration that a target mentions.
- The judge reads neither text and decides on the terms. Everything the original declares must be
  declared with the same meaning. A target must rest on no `sorry`, on no axiom outside the allowed
  ones, and on no unsafe or executed code. The kernel must accept all of it on top of the library.
  Declarations of project modules are part of the data; their proofs are checked too.

A text may change the process that reads it in any way; the judge decides all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from treewright import __version__
from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.answers import CheckResult, SessionLost, Timeout
from treewright.lean.session.errors import DEFAULT_CHECK_SECONDS, LeanError, MissingModule
from treewright.lean.session.inputs import GOAL_NAME, header_of, theorem_texts
from treewright.lean.session.process import NO_CODE
from treewright.lean.session.protocol import ReferenceReply
from treewright.lean.verify import restrictions
from treewright.lean.verify.additions import find_additions, new_errors
from treewright.lean.verify.judge import Judge, JudgeTimeout, OriginalError
from treewright.lean.verify.originals import Originals
from treewright.lean.verify.replay_processes import ReplayProcesses
from treewright.lean.verify.verdict import (
    CHECKS,
    DEFAULT_AXIOMS,
    NATIVE_CHECKS,
    Certificate,
    ModuleDigest,
    Reason,
    Verdict,
    digest,
    kernel_warnings,
)

LONGEST_DATA = 64 << 20
"""The most bytes of terms that the judge is given."""
_SORRY = re.compile(r"[sS]orry|[aA]dmit")


class _Ended(Exception):
    """The check is over before the judge was asked."""

    def __init__(self, reason: Reason, detail: str, ms: float = 0.0) -> None:
        super().__init__(detail)
        self.verdict = Verdict(reason, detail, ms=ms)


class Replayer:
    """Runs replay checks in three Lean processes. Two threads must not use it at once."""

    def __init__(
        self,
        host: Host,
        *,
        axioms: frozenset[str] = DEFAULT_AXIOMS,
        project: Project | None = None,
    ) -> None:
        self._host = host
        self._axioms = axioms
        self._project = project
        self.processes = ReplayProcesses(host, project)
        self._originals = Originals(self.processes.original)
        self.stale = False
        """Whether a verdict was stale. All later verdicts are stale too: the host knows the old
        state."""

    def __enter__(self) -> Replayer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End its processes. A check that runs in another thread ends as lost."""
        self.processes.close()

    def theorem(
        self,
        statement: str,
        proof: str,
        *,
        name: str = GOAL_NAME,
        imports: Sequence[str] = ("Init",),
        preamble: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Return the verdict on a tactic script as the proof of a statement."""
        texts = theorem_texts(statement, proof, name=name, imports=imports, preamble=preamble)
        return self.text(*texts, [name], timeout=timeout)

    def text(
        self,
        original: str,
        candidate: str,
        targets: Sequence[str] = (),
        *,
        declarations: bool = False,
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> Verdict:
        """Check that a candidate proves the targets that the original leaves open.

        Args:
            original: the text with the open targets.
            candidate: the text with the proofs.
            targets: the declarations to prove (default: all that rest on `sorry`).
            declarations: whether the added text may contain commands.
            timeout: seconds for each process.
        """
        # Lean reads CRLF as LF; with both texts so, its positions are ours.
        original, candidate = (t.replace("\r\n", "\n") for t in (original, candidate))
        if original == candidate:
            verdict = Verdict("unchanged", "the candidate is the original")
        elif "\0" in candidate:
            verdict = Verdict("escape", "the text contains a NUL character")
        else:
            verdict = self._check(original, candidate, targets, declarations, timeout)
        return replace(verdict, original=digest(original), candidate=digest(candidate))

    def _check(
        self,
        original: str,
        candidate: str,
        targets: Sequence[str],
        declarations: bool,
        timeout: float,
    ) -> Verdict:
        changed = find_additions(original.encode(), candidate.encode())
        rules = restrictions.rules(changed, commands=declarations)

        def work() -> Verdict:
            prepared = self.processes.run_in_thread(self._originals.get, original, targets, timeout)
            try:
                read = self._read(candidate, rules, timeout)
            except _Ended:
                prepared.result()  # an error of the original is reported first
                raise
            except MissingModule as missing:
                prepared.result()
                raise _Ended("error", str(missing)) from missing
            known = prepared.result()
            reference = known.reference
            if more := set(read.imports) - set(reference.imports):
                return Verdict(
                    "escape", f"the candidate imports {min(more)}; the original does not"
                )
            if reference.unknown:
                name = reference.unknown[0]
                return Verdict("original", f"the original has no declaration {name}")
            if fresh := new_errors(read.errors, reference.errors):
                return Verdict("error", fresh[0].format("candidate"), ms=read.ms)
            if not reference.has_targets:
                return Verdict("original", "nothing in the original is left to prove")
            data, imported = self._export(read, reference.targets, reference.stated, timeout)
            original_data = self._originals.meaning(known, imported, timeout)
            judge = self.processes.judge.get()
            verdict = judge.rule(reference, original_data, data, self._axioms, timeout)
            modules = self._modules(reference)
            certificate = self._certificate(judge, original, candidate, verdict, modules)
            return replace(verdict, ms=read.ms, certificate=certificate if verdict else None)

        return self._guarded(work)

    def declarations(
        self, text: str, names: Sequence[str], *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> dict[str, Verdict]:
        """Return a verdict for each named declaration of one text, without an original.

        Errors elsewhere in the text do not count: a declaration that the kernel accepts is proved.
        """
        verdicts: dict[str, Verdict] = {}

        def work() -> Verdict:
            read = self._read(text, None, timeout)
            header = header_of(read.imports)
            prepared = self.processes.run_in_thread(self._originals.get, header, (), timeout)
            whole = msgspec.Raw(msgspec.json.encode(names))
            data, imported = self._export(read, whole, _NOTHING, timeout)
            bare = prepared.result()
            original = self._originals.meaning(bare, imported, timeout)
            found = self.processes.judge.get().rule_each(
                original, data, self._axioms, timeout, names
            )
            self._modules(bare.reference)
            verdicts.update({n: replace(v, ms=read.ms) for n, v in zip(names, found, strict=True)})
            return Verdict("proved")

        overall = self._guarded(work) if names else Verdict("proved")
        return verdicts if overall.proved else dict.fromkeys(names, overall)

    # -- the processes ----------------------------------------------------------------

    def _guarded(self, work: Callable[[], Verdict]) -> Verdict:
        """Run a check. A lost process and a time limit give a fault, never a refusal."""
        self.processes.renew()
        try:
            verdict = work()
        except _Ended as ended:
            verdict = ended.verdict
        except OriginalError as error:
            verdict = Verdict("original", f"the original does not elaborate: {error}")
        except JudgeTimeout as error:
            verdict = Verdict("timeout", str(error))
        except MissingModule:
            raise
        except LeanError as error:
            verdict = Verdict("lost", str(error))
        self.stale = self.stale or verdict.reason == "stale"
        if verdict.is_fault:
            # The processes may be in any state: the next check starts new ones.
            self.processes.end()
        elif self._originals.needs_another_reader:
            # The next reader of originals starts now, so that the next check does not wait for it.
            self.processes.run_in_thread(self.processes.original.get)
        return verdict

    def _modules(self, reference: ReferenceReply) -> tuple[ModuleDigest, ...]:
        """Return the digests of the project's modules; raise `_Ended` if one changed since it was
        read."""
        if changed := self._host.changed(reference.own):
            raise _Ended("stale", f"{changed} was changed since it was read: begin again")
        if self._project is None:
            return self._host.digests(reference.own)
        modules = self._project.modules_for(reference.imports)
        if edited := self._project.changed(module.name for module in modules):
            raise _Ended("stale", f"{edited} was edited since it was read: begin again")
        return tuple(ModuleDigest(m.name, m.source, m.digest) for m in modules)

    def _certificate(
        self,
        judge: Judge,
        original: str,
        candidate: str,
        verdict: Verdict,
        modules: tuple[ModuleDigest, ...],
    ) -> Certificate:
        return Certificate(
            lean=judge.lean,
            commit=judge.commit,
            treewright=__version__,
            original=digest(original),
            candidate=digest(candidate),
            home=self._host.digest(),
            targets=tuple(sorted(verdict.names)),  # the caller's targets, or those found
            axioms=verdict.axioms,
            allowed_axioms=tuple(sorted(self._axioms)),
            filled=verdict.filled,
            constants=verdict.constants,
            checks=NATIVE_CHECKS if self._host.backend == "native" else CHECKS,
            warnings=kernel_warnings(judge.lean),
            modules=modules,
        )

    def _read(self, candidate: str, rules: dict[str, object] | None, timeout: float) -> CheckResult:
        """Elaborate the candidate under the rules, in the process that reads candidates."""
        result = self.processes.reader.get().check_file(
            candidate, keep=True, rules=rules, timeout=timeout
        )
        if isinstance(result, Timeout):
            raise _Ended("timeout", f"the candidate did not elaborate in {timeout:g} s", result.ms)
        if isinstance(result, SessionLost) and result.reason.startswith(NO_CODE):
            raise _Ended("error", f"the candidate: {result.reason}")
        if isinstance(result, SessionLost):
            raise _Ended("lost", f"the candidate: {result.reason}")
        if result.stopped:
            raise _stopped(result)
        if result.env is None:
            raise _Ended("error", "the candidate did not elaborate", result.ms)
        return result

    def _export(
        self, read: CheckResult, whole: msgspec.Raw, stated: msgspec.Raw, timeout: float
    ) -> tuple[msgspec.Raw, msgspec.Raw]:
        """Return the candidate's terms as data for the judge, and the names of imported ones."""
        assert read.env is not None
        reader = self.processes.reader.get()
        data, imported = reader.export(read.env, whole, stated, timeout)
        reader.free_environment(read.env)
        if len(data) > LONGEST_DATA:
            raise _Ended("data", f"what it rests on is more than {LONGEST_DATA >> 20} MB of terms")
        return data, imported


_NOTHING = msgspec.Raw(b"[]")


def _stopped(after: CheckResult) -> _Ended:
    """Return the refusal of a text that ended early, or that the rules stopped."""
    detail = after.stopped.removeprefix("escape: ")
    if detail == after.stopped:
        return _Ended("error", detail, after.ms)
    if _SORRY.search(detail):
        return _Ended("sorry", "the text contains sorry", after.ms)
    return _Ended("escape", f"generated text may not contain {detail}", after.ms)
