// Draws figures (plain JSON) as SVG: curves, heat maps and bars. Colours are those of the style sheet, so that a
// screen that turns dark needs no second drawing. Every mark stands where its axis says: tests read both back.
"use strict";
const Sawbones = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const charts = [];

  function made(parent, name, attributes, text) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  function html(parent, name, attributes, text) {
    const element = document.createElement(name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  // numbers and axes

  function number(value) {
    if (value === null || value === undefined) return "–";
    if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").replace("NaN", "nan");
    if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
    const size = Math.abs(value);
    return size < 1e-3 || size >= 1e5 ? shorter(value.toExponential(3)) : shorter(value.toPrecision(4));
  }

  function shorter(text) {
    return text.replace(/(\.\d*?)0+(e|$)/, "$1$2").replace(/\.(e|$)/, "$1").replace("e+", "e");
  }

  // As many digits as two neighbouring ticks need to differ.
  function tickText(value, step) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e5 || size < 1e-3) {
      const digits = Math.max(0, Math.floor(Math.log10(size) + 1e-9) - Math.floor(Math.log10(step) + 1e-9));
      return value.toExponential(Math.min(digits, 8)).replace("e+", "e");
    }
    return value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)));
  }

  function niceStep(span, count) {
    const rough = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
    for (const digit of [1, 2, 5, 10]) if (digit * power >= rough * 0.999) return digit * power;
    return 10 * power;
  }

  function linearAxis(low, high, from, to, count) {
    const step = niceStep(high - low, count), ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      const value = i * step;
      ticks.push([value, tickText(value, step)]);
    }
    const at = (value) => from + ((value - low) / (high - low)) * (to - from);
    return { at, back: (pixel) => low + ((pixel - from) / (to - from)) * (high - low), ticks };
  }

  function logAxis(low, high, from, to, count) {
    const first = Math.log10(low), last = Math.log10(high), ticks = [];
    const decades = last - first, every = Math.max(1, Math.ceil(decades / count));
    const digits = decades < 1.2 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decades < 3 ? [1, 2, 5] : [1];
    for (let power = Math.floor(first); power <= Math.ceil(last); power++) {
      if (power % every && digits.length === 1) continue;
      for (const digit of digits) {
        const value = digit * 10 ** power;
        if (value >= low * 0.999999 && value <= high * 1.000001) ticks.push([value, number(Number(value.toPrecision(6)))]);
      }
    }
    const at = (value) => from + ((Math.log10(value) - first) / (last - first)) * (to - from);
    return { at, back: (pixel) => 10 ** (first + ((pixel - from) / (to - from)) * (last - first)), ticks };
  }

  function extent(low, high, log) {
    if (!(low <= high)) return log ? [0.1, 10] : [0, 1];
    if (log) return low === high ? [low / 3, high * 3] : [low / (high / low) ** 0.05, high * (high / low) ** 0.05];
    if (low === high) return low === 0 ? [-1, 1] : [low - Math.abs(low) / 2, low + Math.abs(low) / 2];
    const margin = 0.06 * (high - low);
    return [low - margin, high + margin];
  }

  // one chart: its frame, its toolbar and what is said about the point under the cursor

  function frame(place, figure, width) {
    place.querySelector("svg")?.remove();
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", width);
    svg.setAttribute("height", figure.height);
    svg.setAttribute("viewBox", `0 0 ${width} ${figure.height}`);
    svg.setAttribute("aria-hidden", "true");
    place.prepend(svg);
    return svg;
  }

  function tip(place) {
    return place.querySelector(".tip") || html(place, "div", { class: "tip", role: "status" });
  }

  function showTip(place, lines, x, width) {
    const box = tip(place);
    box.replaceChildren();
    lines.forEach((text, i) => html(box, i ? "span" : "b", {}, text));
    box.style.display = "block";
    const room = box.offsetWidth;
    box.style.left = `${Math.max(0, Math.min(width - room, x + 14 + room > width ? x - room - 14 : x + 14))}px`;
  }

  function hideTip(place) {
    const box = place.querySelector(".tip");
    if (box) box.style.display = "none";
  }

  function button(bar, text, title, act) {
    const made = html(bar, "button", { type: "button", title }, text);
    made.addEventListener("click", act);
    return made;
  }

  function labelWidth(texts) {
    return Math.max(...texts.map((text) => text.length), 1) * 6.3;
  }

  const kinds = {}; // name -> function that makes a chart of that kind, from the files behind this one

  function draw(place, figure) {
    let chart = charts.find((one) => one.place === place);
    if (!chart) {
      chart = kinds[figure.kind](place, figure);
      charts.push(chart);
      place.tabIndex = 0;
      new ResizeObserver(() => { if (place.clientWidth !== chart.width) { chart.width = place.clientWidth; chart.draw(); } }).observe(place);
    }
    chart.figure = figure;
    chart.width = place.clientWidth;
    chart.draw();
    return chart;
  }

  function forget(place) {
    const i = charts.findIndex((one) => one.place === place);
    if (i >= 0) charts.splice(i, 1);
  }

  // a button on every block of code

  function copyButtons() {
    for (const block of document.querySelectorAll("figure.source:not(:has(.copy))")) {
      const press = html(block, "button", { type: "button", class: "copy", "aria-label": "copy this code" }, "copy");
      press.addEventListener("click", async () => {
        const code = block.querySelector("pre > code").cloneNode(true);
        code.querySelectorAll(".no").forEach((number) => number.remove());
        const text = code.textContent;
        try { await navigator.clipboard.writeText(text); } catch { byHand(text); }
        press.textContent = "copied";
        setTimeout(() => { press.textContent = "copy"; }, 1500);
      });
    }
  }

  // A file opened from disk may have no clipboard of its own.
  function byHand(text) {
    const box = html(document.body, "textarea", { "aria-hidden": "true", style: "position:fixed;opacity:0" });
    box.value = text;
    box.select();
    document.execCommand("copy");
    box.remove();
  }

  return { draw, forget, charts, kinds, copyButtons, number, made, html, frame, button, showTip, hideTip, labelWidth, linearAxis, logAxis, extent };
})();
