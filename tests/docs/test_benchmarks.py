"""The page of figures names every benchmark: with its figures, or as one that has none so far."""

from benchmarks.__main__ import RESULTS, benchmarks, earlier, without_figures


def test_every_benchmark_has_figures_or_is_named_as_one_without() -> None:
    page = RESULTS.read_text(encoding="utf-8")
    assert set(earlier()) <= set(benchmarks())
    assert without_figures(earlier()) in page
    assert without_figures([]) == f"Benchmarks without figures so far: {', '.join(benchmarks())}."
    assert without_figures(benchmarks()) == "All benchmarks have figures."
