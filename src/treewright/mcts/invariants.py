"""Everything that must hold of a proof tree, computed afresh from its nodes and edges.

For tests and for `treewright replay --offline`; it visits the whole tree.
"""

from __future__ import annotations

from collections import Counter

from treewright.mcts.prooftree import Edge, Node, ProofTree, Status


def check(tree: ProofTree, *, idle: bool = True) -> None:
    """Raises AssertionError naming the first thing that is wrong.

    `idle` means that nothing is under way, so that no reservation may be left.
    """
    _identities(tree)
    _order(tree)
    for edge in tree.edges:
        _edge(edge)
    for node in tree.nodes:
        _node(node)
    _require(tree.solved == sum(n.status is Status.SOLVED for n in tree.nodes), "solved count")
    _require(tree.dead == sum(n.status is Status.DEAD for n in tree.nodes), "dead count")
    if idle:
        reserved = [n.id for n in tree.nodes if n.virtual] + [e.id for e in tree.edges if e.virtual]
        _require(not reserved, f"virtual losses left on {reserved}")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def _identities(tree: ProofTree) -> None:
    _require(tree.nodes[0] is tree.root, "the root is node 0")
    for index, node in enumerate(tree.nodes):
        _require(node.id == index, f"node {node.id} stands at {index}")
        _require(tree.by_key.get(node.key) is node, f"the key of node {index} leads elsewhere")
    _require(len(tree.by_key) == len(tree.nodes), "as many keys as nodes")
    for index, edge in enumerate(tree.edges):
        _require(edge.id == index, f"edge {edge.id} stands at {index}")
    owned = [edge.id for node in tree.nodes for edge in node.edges]
    _require(sorted(owned) == list(range(len(tree.edges))), "every edge has one parent")
    above = Counter((e.id, c.id) for e in tree.edges for c in e.children)
    below = Counter((e.id, n.id) for n in tree.nodes for e in n.parents)
    _require(above == below, "edges and parents agree")


def _order(tree: ProofTree) -> None:
    """Ranks grow along edges, so there is no circle; depth is the shortest way from the root."""
    for edge in tree.edges:
        for child in edge.children:
            _require(child.rank > edge.parent.rank, f"edge {edge.id} goes down in rank")
    depth = {tree.root.id: 0}
    level = [tree.root]
    while level:
        following: list[Node] = []
        for node in level:
            for edge in node.edges:
                for child in edge.children:
                    if child.id not in depth:
                        depth[child.id] = depth[node.id] + 1
                        following.append(child)
        level = following
    for node in tree.nodes:
        _require(depth.get(node.id) == node.depth, f"depth of node {node.id}")


def _edge(edge: Edge) -> None:
    unsolved = sum(child.status is not Status.SOLVED for child in edge.children)
    _require(edge.unsolved == unsolved, f"unsolved children of edge {edge.id}")
    dead = any(child.status is Status.DEAD for child in edge.children)
    expected = Status.DEAD if dead else Status.OPEN if unsolved else Status.SOLVED
    _require(edge.status is expected, f"status of edge {edge.id}")


def _node(node: Node) -> None:
    name = f"node {node.id}"
    solved = any(edge.status is Status.SOLVED for edge in node.edges)
    alive = any(edge.status is not Status.DEAD for edge in node.edges)
    dead = node.exhausted and not alive
    expected = Status.SOLVED if solved else Status.DEAD if dead else Status.OPEN
    _require(node.status is expected, f"status of {name}")
    live = [edge for edge in node.edges if edge.status is Status.OPEN]
    _require(node.live == ([] if solved else live), f"live edges of {name}")
    _require(node.visits >= 0 and node.virtual >= 0, f"visits of {name}")
    _require(0.0 <= node.total <= node.visits + 1e-6, f"total of {name}")
    if solved:
        proof = node.proof
        _require(proof is not None and proof.status is Status.SOLVED, f"proof of {name}")
        assert proof is not None
        size = 1 + sum(child.proof_size for child in proof.children)
        _require(node.proof_size == size, f"size of the proof of {name}")
    else:
        _require(node.proof is None, f"{name} has a proof and is not solved")
