"""The labels of a question through each route: thick where many are left, red where one is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from core.analysis.label_flow import FlowStep
from ui.charts.style import ERROR, Figure, add_line, add_points, chart, faint, paper, row_axis, scale, words

THICK = 13.0  # pixels of a line with every label
ENDS = ("top", "prompt", "cited")


def label_flow(rows: Sequence[tuple[str, str, tuple[FlowStep, ...]]], of: int) -> Figure:
    """Draw a line for each (route, title, steps). `of` is the number of labels."""
    last = max((sum(not step.kind for step in steps) for _, _, steps in rows), default=1)
    ends = [f"{rows[0][2][-1].name if last == 1 else 'top'}", *ENDS[1:last]] if rows else []
    figure = chart(
        34 + 26 * len(rows),
        x={
            "tickvals": [0, 1, *range(2, 2 + last)],
            "ticktext": [f"{of} relevant", "found", *ends],
            "side": "top",
            "showgrid": False,
            "range": [-0.1, last + 1.3],
        },
        y=row_axis([words(title, 28) for _, title, _ in rows]),
        showlegend=False,
        clickmode="event+select",
    )
    lines: dict[int, list[tuple[float | None, float | None]]] = defaultdict(list)
    nodes, failed = [], []
    for row, (route, title, steps) in enumerate(rows):
        inner = sum(bool(step.kind) for step in steps)
        at, left = 0.0, of
        for n, step in enumerate(steps):
            x = 1 + n / inner if step.kind else 2.0 + n - inner
            lines[left] += [(at, row), (x, row), (None, None)]
            at, left = x, len(step.present)
            lost = f", {len(step.lost)} lost here" if step.lost else ""
            nodes.append((x, row, [route, words(title, 60), f"{words(step.name, 60)}: {left} of {of}{lost}"]))
            failed.append(bool(step.lost))
    accent = scale()[2][1]
    for left, points in sorted(lines.items()):
        line = {"width": THICK * left / of, "color": accent} if left else {"width": 1, "color": faint()}
        dash = "solid" if left else "dot"
        add_line(figure, [x for x, _ in points], [y for _, y in points], {**line, "dash": dash})
    marker = {
        "symbol": ["x" if lost else "circle" for lost in failed],
        "opacity": 1,
        "size": [11 if lost else 7 for lost in failed],
        "color": [ERROR if lost else accent for lost in failed],
        "line": {"width": 1, "color": paper()},
    }
    add_points(figure, nodes, "<b>%{customdata[1]}</b><br>%{customdata[2]}", marker)
    return figure


def describe_flow(rows: Sequence[tuple[str, str, tuple[FlowStep, ...]]], of: int) -> str:
    """Describe the figure for screen readers: what each route has left at its end."""
    told = [f"{title} {len(steps[-1].present)}" for _, title, steps in rows if steps]
    return f"Relevant labels left after each route's last step, of {of}: {', '.join(told)}."
