// A tree run as the page knows it, kept up to date from what the server says has changed.

export class TreeModel {
  constructor() {
    this.version = null;
    this.nodes = new Map();
    this.evals = new Map();
    this.run = null;
    this.onPath = new Set();
  }

  /** Takes an answer of `/api/tree/…` in; true if anything is different. */
  apply(answer) {
    this.run = answer.run;
    const { tree } = answer;
    if (tree.version === this.version) return false;
    if (tree.full) {
      this.nodes.clear();
      this.evals.clear();
    }
    for (const node of tree.nodes) this.nodes.set(node.id, { score: 0, title: "", ...node });
    for (const one of tree.evals) this.evals.set(one.id, { title: "", phases: {}, ...one });
    this.version = tree.version;
    this.#index();
    return true;
  }

  #index() {
    this.onPath = new Set(this.run.best_path ?? []);
    this.nodesOf = new Map();
    this.evalsOf = new Map();
    for (const node of this.nodes.values()) if (node.parent) push(this.nodesOf, node.parent, node);
    for (const one of this.evals.values()) push(this.evalsOf, one.parent, one);
    for (const node of this.nodes.values()) node.evals = this.evalsOf.get(node.id)?.length ?? 0;
    this.mostEvals = Math.max(1, ...[...this.nodes.values()].map((node) => node.evals));
    this.largestScore = Math.max(1e-9, ...[...this.nodes.values()].map((node) => Math.abs(node.score)));
  }

  get root() {
    return this.nodes.get("n0000") ?? null;
  }

  /** A node or an evaluation. */
  get(id) {
    return this.nodes.get(id) ?? this.evals.get(id) ?? null;
  }

  /** What a node brought forth, in groups by depth: promoted nodes, and the other evaluations. */
  groupsOf(id) {
    const groups = new Map();
    const group = (depth) => {
      if (!groups.has(depth)) groups.set(depth, { parent: id, depth, nodes: [], others: [] });
      return groups.get(depth);
    };
    for (const node of this.nodesOf.get(id) ?? []) group(node.depth).nodes.push(node);
    for (const one of this.evalsOf.get(id) ?? []) if (!one.node || !this.nodes.has(one.node)) group(one.depth).others.push(one);
    for (const found of groups.values()) {
      found.nodes.sort((a, b) => this.onPath.has(b.id) - this.onPath.has(a.id) || (a.id < b.id ? -1 : 1));
      found.others.sort((a, b) => (a.id < b.id ? -1 : 1));
    }
    return [...groups.values()];
  }
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}
