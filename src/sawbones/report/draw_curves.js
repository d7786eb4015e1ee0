// Curves: one path for each line, zoom, logarithmic axis, moving average, and a cursor for mouse and keyboard.
"use strict";
(() => {
  const { made, html, number, frame, button, showTip, hideTip, labelWidth, linearAxis, logAxis, extent, charts } = Sawbones;

  function smoothed(values, weight) {
    let level = null;
    return values.map((value) => {
      if (value === null || value === undefined) return null;
      level = level === null ? value : weight * level + (1 - weight) * value;
      return level;
    });
  }

  function curve(place, figure) {
    const chart = { place, figure, log: Boolean(figure.log), smooth: false, range: null, at: null };
    const bar = html(place, "div", { class: "tools" });
    const log = button(bar, "log", "logarithmic axis (l)", () => { chart.log = !chart.log; chart.draw(); });
    const soft = button(bar, "smooth", "moving average over the curve (s)", () => { chart.smooth = !chart.smooth; chart.draw(); });
    const all = button(bar, "all steps", "end the zoom (Escape)", () => zoom(chart, null));

    chart.draw = () => {
      const width = place.clientWidth, { height } = chart.figure, log_ = chart.log;
      if (!width) return;
      const lines = chart.figure.lines.map((line) => ({ ...line, drawn: chart.smooth ? smoothed(line.y, 0.9) : line.y }));
      const full = chart.figure.range || wholeRange(lines);
      const [first, last] = chart.range || full;
      let low = Infinity, high = -Infinity, left = 0;
      for (const line of lines)
        for (let i = 0; i < line.x.length; i++) {
          const value = line.y[i];
          if (value === null || line.x[i] < first || line.x[i] > last) continue;
          if (log_ && value <= 0) { left++; continue; }
          low = Math.min(low, value); high = Math.max(high, value);
        }
      for (const [value] of chart.figure.levels || []) if (value > 0 || !log_) { low = Math.min(low, value); high = Math.max(high, value); }
      const top = (chart.figure.bands || []).length ? 18 : 8, bottom = height - 22;
      [low, high] = extent(low, high, log_);
      const y = (log_ ? logAxis : linearAxis)(low, high, bottom, top, Math.max(2, height / 42));
      const edge = labelWidth(y.ticks.map((tick) => tick[1])) + 10;
      const x = linearAxis(first, last > first ? last : first + 1, edge, width - 8, Math.max(2, width / 110));
      const svg = frame(place, chart.figure, width);
      const clip = `clip-${charts.indexOf(chart)}-${place.id}`;
      made(made(made(svg, "defs", {}), "clipPath", { id: clip }), "rect", { x: edge, y: 0, width: Math.max(0, width - 8 - edge), height: bottom });
      const inside = made(svg, "g", { "clip-path": `url(#${clip})` });
      for (const [from, to, name] of chart.figure.bands || []) {
        const a = x.at(from - 0.5), b = Math.max(x.at(to + 0.5), a + 2);
        made(inside, "rect", { class: "band", x: a, y: top, width: b - a, height: bottom - top, "data-from": from, "data-to": to });
        if (b > edge && a < width - 8) made(inside, "text", { class: "label middle", x: Math.min(Math.max((a + b) / 2, edge + 5), width - 14), y: top - 6 }, name);
      }
      for (const [value, text] of y.ticks) {
        made(svg, "line", { class: "grid", x1: edge, x2: width - 8, y1: y.at(value), y2: y.at(value) });
        made(svg, "text", { class: "label end ytick", x: edge - 6, y: y.at(value) + 3.5 }, text);
      }
      for (const [value, text] of x.ticks) made(svg, "text", { class: "label middle xtick", x: x.at(value), y: height - 8 }, text);
      for (const [value, text] of chart.figure.levels || []) {
        made(inside, "line", { class: "level", x1: edge, x2: width - 8, y1: y.at(value), y2: y.at(value) });
        made(inside, "text", { class: "label end", x: width - 12, y: y.at(value) - 4 }, text);
      }
      lines.forEach((line, i) => {
        const colour = `var(--line${(line.colour ?? i) % 8})`;
        if (chart.smooth) path(inside, line, line.y, x, y, log_, { class: "line faint", style: `stroke:${colour}` });
        path(inside, line, line.drawn, x, y, log_, { class: "line", style: `stroke:${colour}`, "data-line": line.name });
        const near = line.x.filter((value) => value >= first && value <= last).length;
        if (near < 60)
          line.x.forEach((value, j) => {
            if (line.drawn[j] !== null && (!log_ || line.drawn[j] > 0))
              made(inside, "circle", { class: "dot", cx: x.at(value), cy: y.at(line.drawn[j]), r: 2, style: `fill:${colour}` });
          });
      });
      for (const group of chart.figure.broken || [])
        for (const step of group.x) {
          const cx = x.at(step), cy = top + 8;
          made(inside, "path", { class: "cross-mark", d: `M${cx - 4} ${cy - 4}l8 8m0-8l-8 8`, "data-step": step });
        }
      if (left) made(svg, "text", { class: "label end", x: width - 12, y: bottom - 6 }, `${left} values of 0 or less have no place on this axis`);
      chart.x = x; chart.y = y; chart.edge = edge; chart.svg = svg; chart.bottom = bottom; chart.shown = lines;
      log.setAttribute("aria-pressed", chart.log);
      soft.setAttribute("aria-pressed", chart.smooth);
      all.hidden = !chart.range;
      if (chart.at !== null) point(chart, chart.at);
    };
    keys(chart, { l: () => { chart.log = !chart.log; chart.draw(); }, s: () => { chart.smooth = !chart.smooth; chart.draw(); } });
    drag(chart);
    return chart;
  }

  function wholeRange(lines) {
    let first = Infinity, last = -Infinity;
    for (const line of lines) if (line.x.length) { first = Math.min(first, line.x[0]); last = Math.max(last, line.x[line.x.length - 1]); }
    if (!(first <= last)) return [0, 1];
    const margin = Math.max(0.5, 0.015 * (last - first));
    return [first - margin, last + margin];
  }

  function path(parent, line, values, x, y, log, attributes) {
    let d = "", pen = false;
    for (let i = 0; i < line.x.length; i++) {
      const value = values[i];
      if (value === null || (log && value <= 0)) { pen = false; continue; }
      d += `${pen ? "L" : "M"}${x.at(line.x[i]).toFixed(2)} ${y.at(value).toFixed(2)}`;
      pen = true;
    }
    if (d) made(parent, "path", { ...attributes, d });
  }

  function nearest(xs, wanted) {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < wanted) low = middle; else high = middle; }
    return Math.abs(xs[low] - wanted) <= Math.abs(xs[high] - wanted) ? low : high;
  }

  // The values of all lines at the step nearest to `wanted`.
  function point(chart, wanted) {
    const lines = chart.shown.filter((line) => line.x.length);
    if (!lines.length) return;
    const step = lines.map((line) => line.x[nearest(line.x, wanted)]).reduce((a, b) => (Math.abs(a - wanted) <= Math.abs(b - wanted) ? a : b));
    chart.at = step;
    chart.svg.querySelectorAll(".cursor").forEach((old) => old.remove());
    const cx = chart.x.at(step);
    if (cx < chart.edge) return;
    made(chart.svg, "line", { class: "cursor", x1: cx, x2: cx, y1: 8, y2: chart.bottom });
    const said = [`${chart.figure.x} ${number(step)}`];
    for (const line of lines) {
      const i = nearest(line.x, step), value = line.y[i];
      if (Math.abs(line.x[i] - step) > Math.max(1, (chart.x.back(8) - chart.x.back(0)))) continue;
      said.push(`${line.name} ${number(value)}`);
      if (value !== null && !(chart.log && value <= 0)) made(chart.svg, "circle", { class: "cursor", cx, cy: chart.y.at(value), r: 4 });
    }
    for (const group of chart.figure.broken || []) if (group.x.includes(step)) said.push(group.text);
    showTip(chart.place, said, cx, chart.place.clientWidth);
  }

  function leave(chart) {
    chart.at = null;
    hideTip(chart.place);
    chart.svg?.querySelectorAll(".cursor").forEach((old) => old.remove());
  }

  // All curves over the same axis show the same part of it.
  function zoom(chart, range) {
    for (const other of charts)
      if (other.figure.kind === "curve" && other.figure.x === chart.figure.x && other.figure.group === chart.figure.group) {
        other.range = range;
        other.draw();
      }
    leave(chart);
    document.dispatchEvent(new CustomEvent("zoomed", { detail: { range, x: chart.figure.x } }));
  }

  function keys(chart, more) {
    chart.place.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target !== chart.place) return;
      const xs = (chart.shown || []).reduce((best, line) => (line.x.length > best.length ? line.x : best), []);
      const full = chart.range || chart.figure.range || wholeRange(chart.shown), middle = chart.at ?? (full[0] + full[1]) / 2;
      const size = full[1] - full[0];
      const act = {
        ArrowRight: () => point(chart, xs[Math.min(xs.length - 1, chart.at === null ? 0 : nearest(xs, chart.at) + 1)]),
        ArrowLeft: () => point(chart, xs[Math.max(0, chart.at === null ? xs.length - 1 : nearest(xs, chart.at) - 1)]),
        Home: () => point(chart, xs[0]),
        End: () => point(chart, xs[xs.length - 1]),
        "+": () => zoom(chart, [middle - size / 4, middle + size / 4]),
        "-": () => zoom(chart, null),
        Escape: () => zoom(chart, null),
        ...more,
      }[event.key];
      if (act && xs.length) { event.preventDefault(); act(); }
    });
    chart.place.addEventListener("blur", () => leave(chart));
  }

  function drag(chart) {
    let began = null, shade = null;
    const inside = (event) => event.clientX - chart.place.getBoundingClientRect().left;
    chart.place.addEventListener("pointermove", (event) => {
      if (!chart.x || event.target.closest(".tools")) return;
      const at = inside(event);
      if (began === null) { point(chart, chart.x.back(at)); return; }
      shade?.remove();
      shade = made(chart.svg, "rect", { class: "shade", x: Math.min(began, at), y: 8, width: Math.abs(at - began), height: chart.bottom - 8 });
    });
    chart.place.addEventListener("pointerdown", (event) => {
      // A finger that drags over a plot wants to scroll the page.
      if (event.pointerType === "mouse" && event.button === 0 && !event.target.closest(".tools")) { began = inside(event); event.preventDefault(); chart.place.focus({ preventScroll: true }); }
    });
    addEventListener("pointerup", (event) => {
      if (began === null) return;
      const [a, b] = [began, inside(event)].sort((one, other) => one - other);
      began = null; shade?.remove(); shade = null;
      if (b - a > 6) zoom(chart, [chart.x.back(Math.max(a, chart.edge)), chart.x.back(b)]);
    });
    chart.place.addEventListener("pointerleave", () => { if (began === null) leave(chart); });
    chart.place.addEventListener("dblclick", () => zoom(chart, null));
  }

  Sawbones.kinds.curve = curve;
})();
