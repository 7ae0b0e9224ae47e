// A proof search replayed from its trace: what was known after a number of iterations.
//
// The records are kept as they came; `at(n)` adds up the first n iterations, going on from
// the last answer where it can, so that a slider moves in constant work per step.

import { spend } from "./proof-time.js";

const OUTCOMES = new Set(["goals", "closed"]);

export class Replay {
  constructor() {
    this.goals = new Map();
    this.iterations = [];
    this.marked = [];
    this.verdicts = new Map();
    this.version = null;
    this.state = null;
  }

  /** Takes a piece of `/api/proof/…` in; true if anything is different. */
  apply(trace) {
    if (trace.version === this.version) return false;
    if (trace.full) {
      this.goals.clear();
      this.iterations = [];
      this.marked = [];
      this.verdicts.clear();
      this.state = null;
    }
    for (const record of trace.records) {
      if (record.type === "goal") this.goals.set(record.goal, record);
      else if (record.type === "verdict") {
        this.verdicts.set(record.goal, record);
        // A goal that Lean refused is never opened: its verdict is all there is of it.
        if (!this.goals.has(record.goal)) this.goals.set(record.goal, { goal: record.goal });
      }
      else if (record.type === "iteration") {
        if (record.interventions.length) this.marked.push(this.iterations.length);
        this.iterations.push(record);
      }
    }
    this.version = trace.version;
    if (this.state && this.state.goals !== this.goals.size) this.state = null;
    return true;
  }

  /** The last iterations of a goal among the first `n`, the latest first. */
  last(goal, n, most) {
    const found = [];
    for (let i = n - 1; i >= 0 && found.length < most; i -= 1) if (this.iterations[i].goal === goal) found.push(this.iterations[i]);
    return found;
  }

  /** What was tried on a node and did not lead on, among the first `n` iterations. */
  failures(goal, id, n, most) {
    const found = [];
    for (let i = 0; i < n && found.length < most; i += 1) {
      const { goal: of, node: at, attempts } = this.iterations[i];
      if (of === goal && at === id) found.push(...(attempts ?? []).filter((one) => !OUTCOMES.has(one.outcome)));
    }
    return found.slice(0, most);
  }

  /** The trees of all goals after `n` iterations. */
  at(n) {
    if (!this.state || this.state.done > n) this.state = start(this.goals);
    for (; this.state.done < n; this.state.done += 1) step(this.state, this.iterations[this.state.done]);
    return this.state;
  }
}

function start(goals) {
  const trees = new Map();
  for (const [goal, record] of goals) {
    const tree = { nodes: new Map(), agents: new Map(), tactics: new Map(), elapsed: 0 };
    const root = record.root ?? { id: 0, goals: [] };
    tree.root = root.id;
    tree.nodes.set(root.id, node(root));
    trees.set(goal, tree);
  }
  return { done: 0, goals: goals.size, trees };
}

function node(record) {
  return { id: record.id, goals: record.goals ?? [], visits: 0, state: "open", value: null, edges: [], failures: 0, ms: 0 };
}

function step(state, record) {
  const tree = state.trees.get(record.goal);
  if (!tree) return;
  for (const made of record.new ?? []) if (!tree.nodes.has(made.id)) tree.nodes.set(made.id, node(made));
  for (const id of record.path ?? []) {
    const visited = tree.nodes.get(id);
    if (visited) visited.visits += 1;
  }
  const here = tree.nodes.get(record.node);
  for (const attempt of record.attempts ?? []) {
    if (!here) break;
    spend(tree.tactics, attempt);
    here.ms += attempt.ms ?? 0;
    if (!OUTCOMES.has(attempt.outcome)) {
      here.failures += 1;
      continue;
    }
    const edge = { id: attempt.edge ?? `${here.id}:${attempt.tactic}`, tactic: attempt.tactic, from: here.id, children: attempt.children ?? [] };
    here.edges.push(edge);
  }
  if (here && record.value !== undefined) here.value = record.value;
  tree.elapsed = record.elapsed ?? tree.elapsed;
  for (const id of record.solved ?? []) mark(tree, id, "solved");
  for (const id of record.dead ?? []) mark(tree, id, "dead");
  if (record.node !== null && record.node !== undefined && tree.nodes.has(record.node)) tree.agents.set(record.agent ?? 0, { node: record.node, algotype: record.algotype });
}

function mark(tree, id, state) {
  const found = tree.nodes.get(id);
  if (found) found.state = state;
}

/** A node's goals as Lean shows them. */
export function goalText(goal) {
  const hypotheses = (goal.hypotheses ?? []).map((one) => `${one.name} : ${one.type}${one.value ? ` := ${one.value}` : ""}`);
  return [...(goal.case ? [`case ${goal.case}`] : []), ...hypotheses, `⊢ ${goal.target}`].join("\n");
}

/** A node in one line. */
export function goalLine(found) {
  return found.goals.map((goal) => `⊢ ${goal.target}`).join("  ") || "no goals";
}
