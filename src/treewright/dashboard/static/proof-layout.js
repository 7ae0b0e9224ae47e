// Where the nodes of an AND/OR tree stand: columns by distance from the root.
//
// Between a node and what a tactic left of it stands the tactic: several goals behind one
// tactic must all be solved (AND), several tactics are alternatives (OR). A node that
// several tactics lead to is drawn once, under the first.

export const COLUMN = 260;
const ROW = 34;

/** {items: [{id, kind: "node"|"tactic", x, y, …}], byId, links: [[from, to]], top, bottom, columns} */
export function layOutProof(tree, collapsed) {
  const items = [];
  const byId = new Map();
  const links = [];
  const below = new Map();
  const order = [];
  const first = new Set([tree.root]);
  const stack = [[tree.root, 0]];
  while (stack.length) {
    const [id, column] = stack.pop();
    const found = tree.nodes.get(id);
    order.push([id, column]);
    const children = [];
    for (const edge of collapsed.has(id) ? [] : found.edges) {
      const own = edge.children.filter((child) => !first.has(child) && tree.nodes.has(child));
      for (const child of own) first.add(child);
      children.push({ edge, own });
    }
    below.set(id, children);
    for (const { own } of [...children].reverse()) for (const child of [...own].reverse()) stack.push([child, column + 1]);
  }
  let row = 0;
  for (const [id, column] of order) {
    const item = { id, kind: "node", of: tree.nodes.get(id), x: column * COLUMN, y: 0 };
    byId.set(id, item);
    items.push(item);
    const leaf = below.get(id).every(({ own }) => !own.length);
    const size = Math.max(1, below.get(id).filter(({ own }) => !own.length).length);
    if (leaf) {
      item.y = (row + (size - 1) / 2) * ROW;
      item.row = row;
      row += size;
    }
  }
  for (const [id] of [...order].reverse()) place(byId.get(id), below.get(id), byId, items, links);
  for (const item of items) if (item.kind === "tactic") for (const child of item.edge.children) if (byId.has(child)) links.push([item, byId.get(child)]);
  const ys = items.map((item) => item.y);
  return { items, byId, links, top: Math.min(...ys), bottom: Math.max(...ys), columns: Math.max(...items.map((item) => item.x)) / COLUMN + 1 };
}

/** A node stands at the middle of its tactics, a tactic at the middle of its children. */
function place(item, children, byId, items, links) {
  const tactics = [];
  let free = item.row ?? null;
  for (const { edge, own } of children) {
    const ys = own.map((child) => byId.get(child).y);
    const tactic = { id: `t${edge.id}`, kind: "tactic", edge, x: item.x + COLUMN * 0.56, y: ys.length ? (Math.min(...ys) + Math.max(...ys)) / 2 : null };
    if (tactic.y === null && free !== null) {
      tactic.y = free * ROW;
      free += 1;
    }
    tactics.push(tactic);
  }
  const known = tactics.filter((tactic) => tactic.y !== null).map((tactic) => tactic.y);
  if (item.row === undefined) item.y = (Math.min(...known) + Math.max(...known)) / 2;
  let beside = item.y;
  for (const tactic of tactics) {
    if (tactic.y === null) {
      beside += ROW * 0.6;
      tactic.y = beside;
    }
    links.push([item, tactic]);
    items.push(tactic);
  }
}
