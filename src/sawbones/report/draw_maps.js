// Heat maps, bars on lanes and columns.
"use strict";
(() => {
  const { made, number, frame, showTip, hideTip, labelWidth, linearAxis } = Sawbones;
  const LEVELS = 24; // shades of a heat map

  // heat maps: one path for each shade, so that ten thousand cells are two dozen elements

  function map(place, figure) {
    const chart = { place, figure };
    chart.draw = () => {
      const width = place.clientWidth, { x, y, z, height } = chart.figure;
      if (!width || !y.length) return;
      const short = y.map((name) => (name.length > 22 ? "…" + name.slice(-21) : name));
      const edge = Math.min(labelWidth(short) + 14, width * 0.42), bottom = height - 34, right = width - 8;
      const w = (right - edge) / x.length, h = bottom / y.length;
      const svg = frame(place, chart.figure, width), { low, high } = chart.figure;
      const paths = new Map();
      for (let row = 0; row < y.length; row++)
        for (let column = 0; column < x.length; column++) {
          const mark = chart.figure.marks?.[row]?.[column], value = z[row][column];
          if ((mark === null || mark === undefined) && (value === null || value === undefined)) continue;
          const key = mark !== null && mark !== undefined ? `m${mark}` : String(level(value, low, high));
          const cell = `M${(edge + column * w).toFixed(2)} ${(row * h).toFixed(2)}h${(w + 0.3).toFixed(2)}v${(h - (h > 6 ? 1 : 0)).toFixed(2)}h${(-w - 0.3).toFixed(2)}z`;
          paths.set(key, (paths.get(key) || "") + cell);
        }
      for (const [key, d] of paths) {
        const marked = key[0] === "m";
        made(svg, "path", { class: marked ? `cell mark${key.slice(1)}` : "cell", d, "data-level": key, style: marked ? "" : `fill:${shade(Number(key))}` });
      }
      if (chart.figure.numbers && w > 26)
        for (let row = 0; row < y.length; row++)
          for (let column = 0; column < x.length; column++)
            made(svg, "text", { class: `label middle count${level(z[row][column], low, high) > LEVELS / 2 ? " over" : ""}`, x: edge + (column + 0.5) * w, y: (row + 0.5) * h + 3.5 }, number(z[row][column]));
      const rows = Math.ceil(y.length / Math.max(1, Math.floor(bottom / 13)));
      short.forEach((name, row) => { if (row % rows === 0) made(svg, "text", { class: "label end ytick", x: edge - 6, y: (row + 0.5) * h + 3.5 }, name); });
      const columns = Math.max(1, Math.ceil(x.length / Math.max(2, Math.floor((right - edge) / 70))));
      x.forEach((name, column) => { if (column % columns === 0) made(svg, "text", { class: "label middle xtick", x: edge + (column + 0.5) * w, y: bottom + 14 }, String(name)); });
      made(svg, "text", { class: "label end", x: right, y: height - 4 }, chart.figure.x_title || "");
      if (chart.figure.border) {
        // For each row, the column from which on the map lies beyond the border.
        let d = "";
        chart.figure.border.forEach((column, row) => { if (column !== null) d += `${d ? "L" : "M"}${(edge + column * w).toFixed(2)} ${(row * h).toFixed(2)}v${h.toFixed(2)}`; });
        if (d) made(svg, "path", { class: "border", d });
      }
      legend(svg, chart.figure, edge, height);
      chart.cell = (px, py) => [Math.floor(py / h), Math.floor((px - edge) / w)];
      chart.middle = (row, column) => [edge + (column + 0.5) * w, (row + 0.5) * h];
    };
    const told = (row, column) => {
      const { x, y, z, marks, mark_names, x_title, unit } = chart.figure, mark = marks?.[row]?.[column];
      if (row < 0 || column < 0 || row >= y.length || column >= x.length) return null;
      return [y[row], `${x_title || ""} ${x[column]}`, mark !== null && mark !== undefined ? mark_names[mark] : `${unit || ""} ${number(z[row][column])}`];
    };
    place.addEventListener("pointermove", (event) => {
      const box = place.getBoundingClientRect(), at = chart.cell?.(event.clientX - box.left, event.clientY - box.top), said = at && told(...at);
      if (said) showTip(place, said, event.clientX - box.left, place.clientWidth); else hideTip(place);
    });
    place.addEventListener("pointerleave", () => hideTip(place));
    let at = [0, -1];
    place.addEventListener("keydown", (event) => {
      const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!move) return;
      const next = [at[0] + move[0], at[1] + move[1]], said = told(...next);
      event.preventDefault();
      if (said) { at = next; showTip(place, said, chart.middle(...at)[0], place.clientWidth); }
    });
    place.addEventListener("blur", () => hideTip(place));
    return chart;
  }

  function level(value, low, high) {
    if (!(high > low)) return LEVELS >> 1;
    return Math.max(0, Math.min(LEVELS - 1, Math.floor(((value - low) / (high - low)) * LEVELS)));
  }

  function shade(step) {
    const share = (100 * (step + 0.5)) / LEVELS;
    if (share < 50) return `color-mix(in srgb, var(--mid) ${(2 * share).toFixed(0)}%, var(--low))`;
    return `color-mix(in srgb, var(--high) ${(2 * share - 100).toFixed(0)}%, var(--mid))`;
  }

  function legend(svg, figure, edge, height) {
    const width = 84, y = height - 12, low = figure.low_text ?? number(figure.low);
    made(svg, "text", { class: "label", x: edge, y: y + 7 }, low);
    edge += labelWidth([low]) + 4;
    for (let i = 0; i < LEVELS; i++) made(svg, "rect", { class: "legend", x: edge + (i * width) / LEVELS, y, width: width / LEVELS + 0.3, height: 7, style: `fill:${shade(i)}` });
    made(svg, "text", { class: "label", x: edge + width + 4, y: y + 7 }, `${figure.high_text ?? number(figure.high)} ${figure.legend ?? figure.unit ?? ""}`);
  }

  // bars on lanes (what a step does, and when), and columns (counts)

  function bars(place, figure) {
    const chart = { place, figure };
    chart.draw = () => {
      const width = place.clientWidth, { lanes, bars, height } = chart.figure;
      if (!width) return;
      const edge = labelWidth(lanes) + 10, bottom = height - 24, lane = bottom / Math.max(1, lanes.length);
      const last = Math.max(...bars.map((bar) => bar.to ?? bar.from), 1e-9);
      const x = linearAxis(0, last * 1.02, edge, width - 8, Math.max(2, width / 110));
      const svg = frame(place, chart.figure, width);
      for (const [value, text] of x.ticks) {
        made(svg, "line", { class: "grid", x1: x.at(value), x2: x.at(value), y1: 0, y2: bottom });
        made(svg, "text", { class: "label middle xtick", x: x.at(value), y: height - 8 }, text);
      }
      lanes.forEach((name, i) => made(svg, "text", { class: "label end ytick", x: edge - 6, y: (i + 0.5) * lane + 3.5 }, name));
      bars.forEach((bar, i) => {
        const at = { y: bar.lane * lane + lane * 0.22, height: lane * 0.56, "data-bar": i };
        // An event of microseconds still has a mark: a thin line where it begins.
        const wide = bar.to === null ? 0 : x.at(bar.to) - x.at(bar.from);
        const mark = made(svg, "rect", { class: wide < 1.5 ? "bar thin" : "bar", x: x.at(bar.from), width: Math.max(wide, 1.5), ...at });
        made(mark, "title", {}, bar.text);
      });
    };
    return chart;
  }

  function columns(place, figure) {
    const chart = { place, figure };
    chart.draw = () => {
      const width = place.clientWidth, { names, series, height } = chart.figure;
      if (!width || !names.length) return;
      const high = Math.max(...series.flatMap((one) => one.values), 0) || 1;
      const y = linearAxis(0, high * 1.05, height - 24, 8, 4), edge = labelWidth(y.ticks.map((tick) => tick[1])) + 10;
      const svg = frame(place, chart.figure, width), step = (width - 8 - edge) / names.length;
      for (const [value, text] of y.ticks) {
        made(svg, "line", { class: "grid", x1: edge, x2: width - 8, y1: y.at(value), y2: y.at(value) });
        made(svg, "text", { class: "label end ytick", x: edge - 6, y: y.at(value) + 3.5 }, text);
      }
      const every = Math.ceil(names.length / Math.max(1, Math.floor((width - edge) / (labelWidth(names) + 12))));
      names.forEach((name, i) => {
        if (i % every === 0) made(svg, "text", { class: "label middle xtick", x: edge + (i + 0.5) * step, y: height - 8 }, name);
        series.forEach((one, j) => {
          const thick = (step * 0.8) / series.length, top = y.at(one.values[i]);
          const mark = made(svg, "rect", { class: "column", x: edge + i * step + step * 0.1 + j * thick, y: top, width: Math.max(0.8, thick), height: Math.max(0, height - 24 - top), style: `fill:var(--line${j % 8})`, "data-name": name });
          made(mark, "title", {}, `${name}: ${number(one.values[i])} ${one.name}`);
        });
      });
    };
    return chart;
  }

  Object.assign(Sawbones.kinds, { map, bars, columns });
})();
