// Where things stand in the picture of a tree: a column per depth, no crossings.
//
// Children of one parent form a group: promoted ones on top, each a row; the others below,
// each a row while there are few, else dots in a grid. Groups of a column are put as near
// to their parents as they can be without overlapping.

export const COLUMN = 300;
const NODE_ROW = 40;
const OTHER_ROW = 20;
const DOT = 12;
const DOTS_A_ROW = 18;
const MOST_LABELLED = 120;
const GROUP_GAP = 16;
const SMALLEST_NODE = 5;
const NODE_GROWTH = 8;

/** {items: [{id, kind, x, y, r, parent, labelled}], byId, columns, top, bottom} */
export function layOut(model, collapsed) {
  const items = [];
  const byId = new Map();
  const place = (item) => {
    items.push(item);
    byId.set(item.id, item);
  };
  const { root } = model;
  if (!root) return { items, byId, columns: 1, top: 0, bottom: 0 };
  const columns = visibleGroups(model, collapsed);
  placeNode(place, model, root, 0, 0);
  for (const depth of [...columns.keys()].sort((a, b) => a - b)) {
    const groups = columns.get(depth).filter((group) => byId.has(group.parent));
    groups.sort((a, b) => byId.get(a.parent).y - byId.get(b.parent).y || (a.parent < b.parent ? -1 : 1));
    const tops = settle(
      groups.map((group) => byId.get(group.parent).y - group.anchor),
      groups.map((group) => group.height + GROUP_GAP),
    );
    groups.forEach((group, i) => placeGroup(place, model, group, depth * COLUMN, tops[i]));
  }
  const ys = items.map((item) => item.y);
  return { items, byId, columns: Math.max(0, ...columns.keys()) + 1, top: least(ys), bottom: -least(ys.map((y) => -y)) };
}

function least(values) {
  return values.reduce((smallest, value) => Math.min(smallest, value), Infinity);
}

function visibleGroups(model, collapsed) {
  const columns = new Map();
  const queue = [model.root.id];
  let others = 0;
  for (const one of model.evals.values()) if (!one.node) others += 1;
  const labelled = others <= MOST_LABELLED;
  while (queue.length) {
    const id = queue.pop();
    if (collapsed.has(id)) continue;
    for (const group of model.groupsOf(id)) {
      measure(group, labelled);
      if (!columns.has(group.depth)) columns.set(group.depth, []);
      columns.get(group.depth).push(group);
      for (const node of group.nodes) queue.push(node.id);
    }
  }
  return columns;
}

function measure(group, labelled) {
  const rows = labelled ? group.others.length * OTHER_ROW : Math.ceil(group.others.length / DOTS_A_ROW) * DOT + 8;
  group.labelled = labelled;
  group.height = group.nodes.length * NODE_ROW + (group.others.length ? rows : 0);
  group.anchor = group.nodes.length ? NODE_ROW / 2 : group.height / 2;
}

function placeGroup(place, model, group, x, top) {
  let y = top;
  for (const node of group.nodes) {
    placeNode(place, model, node, x, y + NODE_ROW / 2);
    y += NODE_ROW;
  }
  group.others.forEach((one, i) => {
    const at = group.labelled
      ? { x, y: y + (i + 0.5) * OTHER_ROW }
      : { x: x + (i % DOTS_A_ROW) * DOT, y: y + 8 + Math.floor(i / DOTS_A_ROW) * DOT };
    place({ id: one.id, kind: "eval", of: one, parent: group.parent, r: group.labelled ? 4 : 3.5, labelled: group.labelled, first: i === 0, ...at });
  });
}

function placeNode(place, model, node, x, y) {
  const r = SMALLEST_NODE + NODE_GROWTH * Math.sqrt(node.evals / model.mostEvals);
  place({ id: node.id, kind: "node", of: node, parent: node.parent, r, x, y, labelled: true });
}

/** Tops in the given order that do not overlap and are nearest to the wanted ones (least squares). */
export function settle(wanted, heights) {
  const blocks = [];
  wanted.forEach((top, i) => {
    let block = { total: top, size: heights[i], count: 1 };
    for (let last = blocks.at(-1); last && last.total / last.count + last.size > block.total / block.count; last = blocks.at(-1)) {
      blocks.pop();
      block = { total: last.total + block.total - last.size * block.count, size: last.size + block.size, count: last.count + block.count };
    }
    blocks.push(block);
  });
  const tops = [];
  for (const { total, count } of blocks) {
    let top = total / count;
    for (let i = 0; i < count; i += 1) {
      tops.push(top);
      top += heights[tops.length - 1];
    }
  }
  return tops;
}
