"""The marks of a drawn picture, read back in the browser."""

from __future__ import annotations

# The marks of a plot as the page shows them, read back through its own axes: ticks are (value as
# written, pixel), and whoever reads a chart has nothing else.
READ_BACK = """
place => {
  const numbers = (name, axis) => [...place.querySelectorAll('.' + name)].map(
    t => [t.textContent, Number(t.getAttribute(axis)) - (axis === 'y' ? 3.5 : 0)]);
  const points = d => [...d.matchAll(/[ML]([-\\d.]+) ([-\\d.]+)/g)].map(m => [Number(m[1]), Number(m[2])]);
  return {
    x: numbers('xtick', 'x'), y: numbers('ytick', 'y'),
    lines: [...place.querySelectorAll('path[data-line]')].map(p => [p.dataset.line, points(p.getAttribute('d'))]),
    crosses: [...place.querySelectorAll('.cross-mark')].map(p => points(p.getAttribute('d'))[0][0] + 4),
    bands: [...place.querySelectorAll('.band')].map(r => ['x', 'width'].map(a => Number(r.getAttribute(a)))),
    cells: [...place.querySelectorAll('.cell')].map(p => [p.dataset.level, points(p.getAttribute('d'))]),
    bars: [...place.querySelectorAll('.bar')].map(r => ['x', 'y', 'width'].map(a => Number(r.getAttribute(a)))),
    border: [...place.querySelectorAll('.border')].map(p => points(p.getAttribute('d'))),
  };
}
"""


def axis(ticks, log=False):
    """pixel -> value, from the first and the last tick."""
    (a, at_a), (b, at_b) = ((float(text), pixel) for text, pixel in (ticks[0], ticks[-1]))
    if not log:
        return lambda pixel: a + (pixel - at_a) / (at_b - at_a) * (b - a)
    return lambda pixel: a * (b / a) ** ((pixel - at_a) / (at_b - at_a))


def marks(page, name):
    return page.locator(f"#plot-{name}").evaluate(READ_BACK)
