"""Pictures: boxes that do not overlap, lines that lead on, whatever the graph."""

import random
from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from clew.server.pages.drawing.graph import Graph, GraphNode, drawn
from clew.server.pages.drawing.layers import Box, Layout, layout
from tests.tiers import examples

KEYS = [f"n{number}" for number in range(14)]
GRAPHS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS)), max_size=30)


def boxes() -> list[Box]:
    return [Box(key, 60 + 10 * (number % 5), 30) for number, key in enumerate(KEYS)]


def overlapping(found: Layout) -> list[tuple[str, str]]:
    return [
        (a.key, b.key)
        for a, b in combinations(found.nodes, 2)
        if a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height
    ]


@settings(max_examples=examples(60))
@given(GRAPHS)
def test_no_two_boxes_overlap_and_all_lie_within_the_picture(edges: list[tuple[str, str]]) -> None:
    found = layout(boxes(), edges)
    assert [node.key for node in found.nodes] == KEYS
    assert overlapping(found) == []
    for node in found.nodes:
        assert 0 <= node.x <= node.x + node.width <= found.width
        assert 0 <= node.y <= node.y + node.height <= found.height


@settings(max_examples=examples(60))
@given(GRAPHS)
def test_lines_lead_from_box_to_box_and_to_the_right_unless_they_close_a_cycle(edges: list[tuple[str, str]]) -> None:
    found = layout(boxes(), edges)
    places = {node.key: node for node in found.nodes}
    assert {(line.source, line.target) for line in found.lines} == {(a, b) for a, b in edges if a != b}
    for line in found.lines:
        source, target = places[line.source], places[line.target]
        assert source.layer != target.layer
        if source.layer < target.layer:
            assert line.points[0] == (source.x + source.width, source.y + source.height / 2)
            assert line.points[-1] == (target.x, target.y + target.height / 2)
            assert all(a[0] <= b[0] for a, b in pairwise(line.points))


def test_a_chain_stands_in_one_line_and_a_graph_without_cycles_leads_only_right() -> None:
    chain = layout(boxes(), list(pairwise(KEYS)))
    assert len({node.y for node in chain.nodes}) == 1
    numbers = random.Random(7)
    edges = [(KEYS[numbers.randrange(number)], KEYS[number]) for number in range(1, len(KEYS))]
    places = {node.key: node.layer for node in layout(boxes(), edges).nodes}
    assert all(places[a] < places[b] for a, b in edges)


def test_two_hundred_nodes_are_drawn_without_overlap() -> None:
    numbers = random.Random(1)
    nodes = tuple(
        GraphNode(key=f"n{n}", kind="run", title=f"Month close {n}", subtitle="x" * (n % 60)) for n in range(200)
    )
    edges = tuple(
        (f"n{numbers.randrange(max(0, n - 25), n)}", f"n{n}") for n in range(1, 200) for _ in range(1 + n % 2)
    )
    picture = drawn(Graph(nodes, edges))
    assert len(picture.boxes) == 200
    assert all(box.x + box.width <= picture.width and box.y + box.height <= picture.height for box in picture.boxes)
    for a, b in combinations(picture.boxes, 2):
        assert not (a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height)


def test_what_belongs_to_a_node_is_what_it_comes_from_and_what_comes_from_it() -> None:
    nodes = tuple(GraphNode(key=key, kind="run", title=key) for key in "abcdef")
    graph = Graph(nodes, (("a", "b"), ("b", "c"), ("d", "c"), ("e", "f")))
    assert {node.key for node in graph.around("b").nodes} == {"a", "b", "c"}
    assert graph.around("b").edges == (("a", "b"), ("b", "c"))
