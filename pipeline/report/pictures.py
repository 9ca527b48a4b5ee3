"""Pictures of the page, as SVG text: the same results are the same bytes."""

from __future__ import annotations

import io

from pipeline.report.results import Results

_MOMENTS = {"peak": "tab:red", "before": "tab:blue", "after": "tab:green"}


def memory_per_chunk(results: Results) -> str | None:
    """Memory before, at peak and after each chunk; None without telemetry."""
    where, chunks = results.memory()
    if results.peak_bytes is None:
        return None
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    with mpl.rc_context({"svg.hashsalt": "twophase", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        for moment, color in _MOMENTS.items():
            heights = [
                float("nan") if chunk[moment] is None else chunk[moment] / 2**30  # type: ignore[operator]
                for chunk in chunks
            ]
            axes.plot(range(len(chunks)), heights, marker=".", color=color, label=moment)
        axes.set(xlabel="chunk", ylabel=f"{where} memory, GiB", ylim=(0, None))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right", ncols=3)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]
