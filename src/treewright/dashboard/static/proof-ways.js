// Which way to draw first: for every goal its best tactic, and how much lies below it.
//
// A solved goal is reached by its shortest proof. An open one by the tactic that leaves least
// to prove, judged by the values that the search recorded. A goal that several tactics lead to
// has one home, on the way from the root if it is on it: it is drawn there and referred to
// from elsewhere.

const UNSEEN = 0.3; // how likely a goal looks that nobody has valued
const STEP = 0.01; // shorter ways are better ones
const DEAD = 1e6;

/** Writes into every node: `cost`, `best`, `others`, `home`, `kids`, `below`. Returns the way's nodes. */
export function findWays(tree) {
  for (const node of tree.nodes.values()) Object.assign(node, { cost: undefined, best: null, others: [], home: null, kids: [], below: null });
  for (const node of childrenFirst(tree)) weigh(tree, node);
  return placeAll(tree);
}

/** Every node after those that its tactics lead to, as far as there are no circles. */
function childrenFirst(tree) {
  const [order, begun] = [[], new Set()];
  for (const id of [tree.root, ...tree.nodes.keys()]) {
    if (begun.has(id)) continue;
    begun.add(id);
    const stack = [[tree.nodes.get(id), 0, 0]];
    while (stack.length) {
      const frame = stack.at(-1);
      const edge = frame[0].edges[frame[1]];
      if (!edge) {
        order.push(stack.pop()[0]);
      } else if (frame[2] >= edge.children.length) {
        frame[1] += 1;
        frame[2] = 0;
      } else {
        const child = edge.children[frame[2]++];
        if (begun.has(child) || !tree.nodes.has(child)) continue;
        begun.add(child);
        stack.push([tree.nodes.get(child), 0, 0]);
      }
    }
  }
  return order;
}

function weigh(tree, node) {
  for (const edge of node.edges) {
    const children = edge.children.map((id) => tree.nodes.get(id)).filter(Boolean);
    edge.state = edgeState(edge, children);
    edge.visits = children.reduce((least, one) => Math.min(least, one.visits), Infinity);
    edge.cost = STEP + children.reduce((sum, one) => sum + (one.cost ?? DEAD), 0);
  }
  const solves = (edge) => node.state === "solved" && edge.state === "solved";
  const sorted = [...node.edges].sort((a, b) => solves(b) - solves(a) || a.cost - b.cost || b.visits - a.visits);
  [node.best = null, ...node.others] = sorted;
  const own = node.state === "dead" ? DEAD : -Math.log(Math.min(0.99, Math.max(1e-6, node.value ?? UNSEEN)));
  node.cost = node.best && node.best.cost < DEAD ? node.best.cost : own;
}

function edgeState(edge, children) {
  if (children.some((one) => one.state === "dead")) return "dead";
  return children.length === edge.children.length && children.every((one) => one.state === "solved") ? "solved" : "open";
}

function placeAll(tree) {
  const root = tree.nodes.get(tree.root);
  const way = [root];
  for (let i = 0; i < way.length; i += 1) if (way[i].best) way.push(...settle(tree, way[i], way[i].best));
  const placed = [...way];
  for (let i = 0; i < placed.length; i += 1) {
    const node = placed[i];
    for (const edge of [node.best, ...node.others]) if (edge) placed.push(...settle(tree, node, edge));
  }
  for (const node of placed) node.below = nothing();
  for (const node of placed.reverse()) if (node.home) add(tree.nodes.get(node.home.from).below, node);
  return new Set(way);
}

const nothing = () => ({ goals: 0, solved: 0, open: 0, dead: 0 });

/** A goal and what is below it. */
function add(sum, node) {
  sum[node.state] += 1;
  sum.goals += 1;
  for (const what of Object.keys(sum)) sum[what] += node.below[what];
}

/** Gives those goals of a tactic a home that have none yet. */
function settle(tree, node, edge) {
  const found = [];
  for (const id of edge.children) {
    const child = tree.nodes.get(id);
    if (!child || child.home || id === tree.root) continue;
    child.home = edge;
    node.kids.push(child);
    found.push(child);
  }
  return found;
}

/** What tactics lead to, added up over the goals that are drawn under them. */
export function weight(tree, edges) {
  const sum = nothing();
  for (const edge of edges) {
    for (const id of new Set(edge.children)) {
      const child = tree.nodes.get(id);
      if (child?.home === edge) add(sum, child);
    }
  }
  return sum;
}
