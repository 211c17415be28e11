import json
from collections.abc import Collection, Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.tracelink import Direction, LineageGraph, LineageNode, Link, UnitedLinks, render_tree, to_dot, walk
from tests.tiers import examples


class MemoryLinks:
    def __init__(self, links: Iterable[Link]) -> None:
        self.links = tuple(links)
        self.questions = 0

    def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
        self.questions += 1
        return [link for link in self.links if link[0] in trace_ids]

    def children(self, trace_ids: Collection[int]) -> Iterable[Link]:
        self.questions += 1
        return [link for link in self.links if link[1] in trace_ids]


# 6 is a summary of 4 and 5; 4 came from 1 and 2, 5 from 2 and 3.
DIAMOND = MemoryLinks([(6, 4), (6, 5), (4, 1), (4, 2), (5, 2), (5, 3)])
LINKS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=30)


def depths(graph: LineageGraph) -> dict[int, int]:
    return {node.trace_id: node.depth for node in graph.nodes}


def test_the_way_up_finds_all_that_a_trace_came_from() -> None:
    graph = walk(DIAMOND, 6, Direction.UP)
    assert depths(graph) == {6: 0, 4: 1, 5: 1, 1: 2, 2: 2, 3: 2}
    assert set(graph.links) == set(DIAMOND.links)
    assert graph.leaves == (1, 2, 3)
    assert graph.is_complete


def test_the_way_down_finds_all_that_came_from_a_trace() -> None:
    graph = walk(DIAMOND, 2, Direction.DOWN)
    assert depths(graph) == {2: 0, 4: 1, 5: 1, 6: 2}
    assert graph.links == ((4, 2), (5, 2), (6, 4), (6, 5))
    assert graph.leaves == (6,)


def test_a_trace_without_links_is_its_own_leaf() -> None:
    graph = walk(MemoryLinks([]), 42, Direction.UP)
    assert graph == LineageGraph(42, Direction.UP, (LineageNode(42, 0, expanded=True),), ())
    assert graph.leaves == (42,)


def test_a_walk_asks_once_per_hop() -> None:
    chain = MemoryLinks((n + 1, n) for n in range(1, 11))
    walk(chain, 11, Direction.UP)
    assert chain.questions == 11


def test_circles_do_not_keep_a_walk() -> None:
    graph = walk(MemoryLinks([(1, 2), (2, 3), (3, 1), (2, 2)]), 1, Direction.UP)
    assert depths(graph) == {1: 0, 2: 1, 3: 2}
    assert set(graph.links) == {(1, 2), (2, 3), (3, 1), (2, 2)}
    assert graph.is_complete


def test_a_walk_stops_at_its_depth_and_says_what_it_did_not_look_behind() -> None:
    graph = walk(DIAMOND, 6, Direction.UP, max_depth=1)
    assert [(n.trace_id, n.expanded) for n in graph.nodes] == [(6, True), (4, False), (5, False)]
    assert not graph.is_complete
    assert graph.leaves == ()


def test_a_walk_stops_at_its_number_of_traces_and_says_so() -> None:
    wide = MemoryLinks((1, n) for n in range(2, 1000))
    graph = walk(wide, 1, Direction.UP, max_nodes=10)
    assert len(graph.nodes) == 10
    assert all(parent in depths(graph) for _, parent in graph.links)
    assert not graph.is_complete


def test_a_walk_that_ends_exactly_at_its_limits_is_complete() -> None:
    assert walk(DIAMOND, 6, Direction.UP, max_depth=3, max_nodes=6).is_complete


def test_links_of_several_readers_are_walked_as_one() -> None:
    united = UnitedLinks([MemoryLinks([(3, 2)]), MemoryLinks([(2, 1), (3, 2)])])
    assert walk(united, 3, Direction.UP).links == ((3, 2), (2, 1))
    assert walk(united, 1, Direction.DOWN).links == ((2, 1), (3, 2))


@settings(max_examples=examples(300), deadline=None)
@given(links=LINKS, start=st.integers(1, 9), direction=st.sampled_from(Direction), max_depth=st.integers(0, 10))
def test_a_walk_finds_what_an_interpreter_with_parent_sets_finds(
    links: list[Link], start: int, direction: Direction, max_depth: int
) -> None:
    steps = links if direction is Direction.UP else [(parent, child) for child, parent in links]
    reached: dict[int, int] = {start: 0}
    for depth in range(1, max_depth + 1):
        for trace_id in {far for near, far in steps if near in reached}:
            reached.setdefault(trace_id, depth)
    inner = {trace_id for trace_id, depth in reached.items() if depth < max_depth}

    graph = walk(MemoryLinks(links), start, direction, max_depth=max_depth)

    assert depths(graph) == reached
    assert {n.trace_id for n in graph.nodes if n.expanded} == inner
    assert set(graph.links) == {link for link, (near, _) in zip(links, steps, strict=True) if near in inner}
    assert len(set(graph.links)) == len(graph.links)


@settings(max_examples=examples(200), deadline=None)
@given(links=LINKS, start=st.integers(1, 9), max_nodes=st.integers(1, 10))
def test_a_bounded_walk_is_part_of_the_whole_and_knows_if_it_is_not_all(
    links: list[Link], start: int, max_nodes: int
) -> None:
    whole = walk(MemoryLinks(links), start, Direction.UP)
    part = walk(MemoryLinks(links), start, Direction.UP, max_nodes=max_nodes)
    assert len(part.nodes) == min(max_nodes, len(whole.nodes))
    assert depths(part).items() <= depths(whole).items()
    assert set(part.links) <= set(whole.links)
    if part.is_complete:
        assert part == whole
    assert {trace_id for link in part.links for trace_id in link} <= set(depths(part))


def test_a_tree_unfolds_a_trace_once_and_marks_where_the_walk_stopped() -> None:
    assert render_tree(walk(DIAMOND, 6, Direction.UP)) == (
        "6\n"
        "├─ 4\n"
        "│  ├─ 1\n"
        "│  └─ 2\n"
        "└─ 5\n"
        "   ├─ 2 (above)\n"
        "   └─ 3"
    )  # fmt: skip
    assert render_tree(walk(DIAMOND, 6, Direction.UP, max_depth=1)) == "6\n├─ 4 …\n└─ 5 …"
    assert render_tree(walk(DIAMOND, 3, Direction.DOWN), label=lambda n: f"row {n}") == "row 3\n└─ row 5\n   └─ row 6"


def test_a_tree_of_a_circle_ends() -> None:
    assert render_tree(walk(MemoryLinks([(1, 2), (2, 1)]), 1, Direction.UP)) == "1\n└─ 2\n   └─ 1 (above)"


def test_a_chain_of_thousands_of_hops_is_walked_and_rendered() -> None:
    class Chain(MemoryLinks):
        def parents(self, trace_ids: Collection[int]) -> Iterable[Link]:
            return [(n, n - 1) for n in trace_ids if n > 1]

    graph = walk(Chain([]), 3_000, Direction.UP, max_depth=5_000)
    assert graph.is_complete
    assert render_tree(graph).count("\n") == 2_999


def test_the_json_of_a_graph_has_nodes_and_links() -> None:
    graph = walk(MemoryLinks([(2, 1)]), 2, Direction.UP)
    assert json.loads(json.dumps(graph.to_json())) == {
        "trace_id": 2,
        "direction": "up",
        "complete": True,
        "nodes": [
            {"trace_id": 2, "depth": 0, "expanded": True},
            {"trace_id": 1, "depth": 1, "expanded": True},
        ],
        "links": [{"trace_id": 2, "parent_trace_id": 1}],
    }


def test_dot_draws_arrows_from_parent_to_child_and_escapes_labels() -> None:
    graph = walk(DIAMOND, 4, Direction.UP, max_depth=1)
    assert to_dot(graph, label=lambda n: f'row "{n}"\n\\') == (
        "digraph lineage {\n"
        "  rankdir=LR;\n"
        "  node [shape=box];\n"
        '  "4" [label="row \\"4\\"\\n\\\\", style="bold"];\n'
        '  "1" [label="row \\"1\\"\\n\\\\", style="dashed"];\n'
        '  "2" [label="row \\"2\\"\\n\\\\", style="dashed"];\n'
        '  "1" -> "4";\n'
        '  "2" -> "4";\n'
        "}\n"
    )
