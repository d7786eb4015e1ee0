// The live page: keeps what the server has sent by cursor, and draws it.
"use strict";
(() => {
  const { html, draw, number } = Sawbones;
  const token = new URLSearchParams(location.search).get("token") || "";
  const MOST = 3000; // points of a line; beyond that, pairs of neighbours are joined to their extremes
  const live = { start: null, lines: [], views: [], compared: [], cursor: "", zoom: null, finer: null };
  const body = (name) => document.querySelector(`#${name} .body`);

  function add(run, points) {
    for (const [name, more] of Object.entries(points)) {
      const line = (live.lines[run][name] ||= { x: [], y: [], broken: [], numBroken: 0 });
      line.x.push(...more.x);
      line.y.push(...more.y);
      line.broken.push(...more.broken);
      line.numBroken += more.num_broken;
      if (line.x.length > MOST) thin(line);
      if (line.broken.length > 200) line.broken = line.broken.filter((_, i) => i % 2 === 0);
    }
  }

  // Of every four points the lowest and the highest stay, in their order.
  function thin(line) {
    const x = [], y = [], last = line.x.length - 1;
    for (let i = 0; i <= last; i += 4) {
      let low = i, high = i;
      for (let j = i; j < Math.min(i + 4, last + 1); j++) { if (line.y[j] < line.y[low]) low = j; if (line.y[j] > line.y[high]) high = j; }
      for (const at of low === high ? [low] : [Math.min(low, high), Math.max(low, high)]) { x.push(line.x[at]); y.push(line.y[at]); }
    }
    line.x = x; line.y = y;
  }

  function figure(name, place) {
    const many = live.start.runs.length > 1, lines = [], broken = [];
    live.start.runs.forEach((run, i) => {
      const known = live.finer ? live.finer[i] : live.lines[i], keys = Object.keys(known).filter((key) => key.split("#")[0] === name);
      for (const key of keys) {
        const line = known[key], own = keys.length > 1 ? `, optimizer ${key.split("#")[1] || 0}` : "";
        lines.push({ name: (many ? run.name : name.replaceAll("_", " ")) + own, x: line.x, y: line.y, colour: many ? i : lines.length });
        if (line.broken.length) broken.push({ x: line.broken, text: `not finite at ${line.numBroken ?? line.num_broken} steps` });
      }
      if (name === "accuracy" && live.views[i]?.accuracy) lines.push({ name: many ? run.name : "accuracy", ...live.views[i].accuracy, colour: many ? i : 0 });
      if (!keys.length) return;
      const evaluated = name === "loss" && live.views[i]?.evaluation;
      if (evaluated) lines.push({ name: many ? `${run.name}, evaluation` : "evaluation", x: evaluated.x, y: evaluated.y, colour: many ? i : lines.length });
    });
    const values = lines.flatMap((line) => line.y).filter((value) => value !== null);
    const log = place.chosen ?? (["grad_norm", "update_ratio", "scale"].includes(name) && Math.min(...values) > 0 && Math.max(...values) > 30 * Math.min(...values));
    return { kind: "curve", height: 216, x: "step", lines, broken, log, bands: many ? [] : live.views[0]?.bands || [] };
  }

  function curves() {
    if (!live.start) return;
    const into = body("now");
    let panels = into.querySelector(".panels");
    if (!panels) { panels = html(into, "div", { class: "panels" }); into.prepend(panels); }
    for (const [name, title] of Object.entries({ ...live.start.curves, accuracy: "Accuracy in evaluations" })) {
      if (name === "accuracy" ? !live.views.some((view) => view.accuracy) : !live.lines.some((lines) => Object.keys(lines).some((key) => key.split("#")[0] === name))) continue;
      let place = document.getElementById(`plot-${name}`);
      if (!place) {
        const panel = html(panels, "div", { class: "panel" });
        html(panel, "h3", {}, title);
        place = html(panel, "div", { class: "plot", id: `plot-${name}`, role: "img", style: "min-height:216px" });
        if (live.start.runs.length > 1) legend(panel);
      }
      const drawn = draw(place, figure(name, place));
      const line = drawn.figure.lines[0];
      place.setAttribute("aria-label", `${title} over steps, now ${number(line?.y[line.y.length - 1])}`);
    }
    into.querySelector(".waiting")?.remove();
    document.body.dataset.drawn = Sawbones.charts.length;
  }

  function legend(panel) {
    const key = html(panel, "p", { class: "key" });
    live.start.runs.forEach((run, i) => {
      const one = html(key, "span", {});
      html(one, "i", { class: "swatch", style: `background:var(--line${i % 8})` });
      one.append(run.name);
    });
  }

  function numbers() {
    const list = document.getElementById("numbers");
    list.replaceChildren();
    const first = live.lines[0] || {};
    const shown = [["step", live.steps?.[0]], ...Object.entries(live.start.curves).map(([name, title]) => [title, first[name]?.y[first[name].y.length - 1]])];
    for (const [name, value] of shown)
      if (value !== undefined) { const one = html(list, "div", {}); html(one, "dt", {}, name); html(one, "dd", {}, number(value)); }
  }

  function state() {
    const ended = live.ended || [], head = document.getElementById("state");
    const running = live.start.runs.filter((_, i) => !ended[i]).length;
    const told = live.start.runs.length > 1
      ? `${live.start.runs.length} runs, ${running ? `${running} still running` : "all ended"}`
      : ended[0] ? `Ended (${live.views[0]?.ending || "…"}) after ${(live.steps?.[0] ?? -1) + 1} steps` : live.steps?.[0] >= 0 ? "Training" : "Waiting for the first step";
    if (head.textContent !== told) head.textContent = told;
    document.title = `${live.steps?.[0] ?? ""} ${live.start.runs.map((run) => run.name).join(", ")} · Sawbones`;
  }

  function findings() {
    const into = body("findings");
    into.replaceChildren();
    live.views.forEach((view, i) => {
      const whose = live.start.runs.length > 1 ? `${live.start.runs[i].name}: ` : "";
      if (view.trouble) html(into, "p", {}, whose + view.trouble);
      for (const seen of view.symptoms || []) {
        const one = html(into, "div", { class: `found ${seen.ill ? "ill" : ""}` });
        html(one, "p", {}, whose + seen.text + (seen.steps.length ? ` (from step ${seen.steps[0]})` : ""));
      }
      for (const found of view.findings || []) {
        const one = html(into, "article", { class: `found ${found.status}` });
        html(one, "span", { class: `badge ${found.status}` }, found.status);
        html(one, "code", {}, ` ${found.fault} ${found.where}`);
        if (found.steps.length) html(one, "span", { class: "quiet" }, ` from step ${found.steps[0]}`);
        html(one, "h3", {}, whose + found.title);
        if (found.code) html(one, "p", {}).append(Object.assign(document.createElement("code"), { textContent: found.code }));
        for (const text of found.evidence) html(one, "p", { class: "quiet" }, text);
        if (found.fix) html(one, "p", {}, `Fix: ${found.fix}`);
      }
    });
    if (!into.children.length) html(into, "p", { class: "quiet" }, "Nothing was found so far.");
  }

  // Tables and pictures of a section. A picture keeps its place, so that its zoom and focus stay.
  function blocks(name, list) {
    const into = body(name), before = new Map([...into.querySelectorAll("[data-title]")].map((one) => [one.dataset.title, one]));
    const kept = list.map((block, i) => {
      const key = `${block.run ?? 0} ${i}`, panel = before.get(key) || html(into, "div", { class: "panel", "data-title": key });
      before.delete(key);
      let head = panel.querySelector("h3") || html(panel, "h3", {});
      head.textContent = (block.whose || "") + block.title;
      const pictures = block.figure ? [{ name: "", figure: block.figure }] : block.figures || [];
      if (panel.dataset.told === JSON.stringify(block)) return panel;
      panel.dataset.told = JSON.stringify(block);
      const open = panel.querySelector("details")?.open;
      panel.querySelectorAll(".scroll, .quiet, .samples, .source, details").forEach((old) => old.remove());
      draws(panel, `${name}-${block.run ?? 0}-${i}`, head.textContent, pictures);
      if (block.samples?.length) samples(panel, block.samples);
      else if (block.rows?.length) table(panel, block, open);
      else if (block.diff) diff(panel, block.diff);
      else if (block.why) html(panel, "p", { class: "quiet" }, block.why);
      if (block.note) html(panel, "p", { class: "quiet" }, block.note);
      return panel;
    });
    for (const old of before.values()) { old.querySelectorAll(".plot").forEach(Sawbones.forget); old.remove(); }
    return kept;
  }

  // Pictures that are still wanted keep their place.
  function draws(panel, name, title, pictures) {
    const many = pictures.length > 1 || pictures[0]?.name;
    const old = [...panel.querySelectorAll(".plot")];
    if (old.length !== pictures.length) { old.forEach((one) => { Sawbones.forget(one); one.remove(); }); panel.querySelector(".gallery")?.remove(); }
    const grid = many ? panel.querySelector(".gallery") || html(panel, "div", { class: "gallery" }) : panel;
    pictures.forEach((one, i) => {
      let place = panel.querySelectorAll(".plot")[i];
      if (!place) {
        const box = many ? html(grid, "div", {}) : panel;
        if (many) html(box, "h4", {}, one.name);
        place = html(box, "div", { class: "plot", id: `plot-${name}${many ? `-${i}` : ""}`, role: "img" });
      } else if (many) place.previousSibling.textContent = one.name;
      place.setAttribute("aria-label", one.name ? `${title}: ${one.name}` : title);
      draw(place, one.figure);
    });
  }

  // Examples side by side: one row for each tensor of the batch, one column for each example.
  function samples(panel, columns) {
    const scroll = html(panel, "div", { class: "scroll samples", tabindex: "0" }), made = html(scroll, "table", {}), rows = html(made, "tbody", {});
    for (const column of columns) {
      const row = html(rows, "tr", {}), head = html(row, "th", { scope: "row" }, column.name);
      if (column.note) html(head, "small", {}, column.note);
      column.values.forEach((value, i) => {
        const cell = html(row, "td", { class: column.kind });
        if (column.kind === "pictures") pixels(cell, column, value, `${column.name}, example ${i + 1}`);
        else cell.textContent = value;
      });
    }
  }

  function pixels(cell, { width, height }, coded, title) {
    const bytes = atob(coded), canvas = html(cell, "canvas", { width, height, role: "img", "aria-label": title });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes.charCodeAt(3 * i + c);
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  function table(panel, block, open) {
    let into = panel;
    if (block.folded) { into = html(panel, "details", open ? { open: "" } : {}); html(into, "summary", {}, block.folded); }
    const scroll = html(into, "div", { class: `scroll${block.rows.length > 24 ? " tall" : ""}`, tabindex: "0" }), made = html(scroll, "table", {});
    const head = html(html(made, "thead", {}), "tr", {}), rows = html(made, "tbody", {});
    for (const text of block.heads) html(head, "th", {}, text);
    for (const row of block.rows) { const one = html(rows, "tr", {}); for (const cell of row) html(one, "td", {}, cell); }
  }

  function diff(panel, lines) {
    const code = html(html(html(panel, "figure", { class: "source diff" }), "pre", { tabindex: "0" }), "code", {});
    for (const line of lines) {
      const kind = /^(---|\+\+\+|diff|index)/.test(line) ? "file" : { "+": "add", "-": "del", "@": "hunk" }[line[0]] || "same";
      html(code, "span", { class: `row ${kind}` }, `${line || " "}\n`);
    }
    Sawbones.copyButtons();
  }

  function compare() {
    if (live.start.runs.length < 2) { document.getElementById("compare").hidden = true; return; }
    const first = live.start.runs[0].name, list = [];
    for (const one of live.compared) {
      const at = one.parts_at === null ? "the losses do not part" : `the losses part at step ${one.parts_at}`;
      list.push({ run: one.run, title: `${live.start.runs[one.run].name} against ${first}: ${at}`, heads: ["what differs"], rows: one.rows.map((text) => [text]), why: "nothing differs as far as both went" });
    }
    blocks("compare", list);
  }

  function about() {
    const list = live.views.map((view, i) => ({ run: i, title: `${live.start.runs[i].folder}`, heads: ["", ""], rows: [["script", view.script], ["command", view.command], ["ended", live.ended?.[i] ? view.ending : "still running"], ...Object.entries(view.environment || {})].filter((row) => row[1] && row[1] !== "None"), why: "" }));
    live.views.forEach((view, i) => { if (view.changes?.length) list.push({ run: i, title: `${live.start.runs[i].folder}: not committed when it began`, diff: view.changes }); });
    blocks("about", list);
  }

  function views(message) {
    message.views.forEach((news, i) => Object.assign(live.views[i], news));
    live.compared = message.compared; live.ended = message.ended;
    findings();
    for (const [name, part] of [["now", "logged"], ["layers", "layers"], ["data", "data"], ["ranks", "ranks"]])
      blocks(name, live.views.flatMap((view, i) => (view[part] || []).map((block) => ({ ...block, run: i, whose: live.start.runs.length > 1 ? `${live.start.runs[i].name}: ` : "" }))));
    compare(); about(); state(); curves();
  }

  let waiting = false;
  function soon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; if (!live.zoom) curves(); numbers(); state(); });
  }

  document.addEventListener("zoomed", async (event) => {
    if (event.detail.x !== "step") return;
    live.zoom = event.detail.range; live.finer = null;
    if (live.zoom) {
      const asked = live.zoom;
      const answer = await fetch(`series?token=${token}&from=${asked[0]}&to=${asked[1]}`);
      if (!answer.ok || live.zoom !== asked) return;
      live.finer = await answer.json();
    }
    curves();
  });

  // The chosen axis is the user's: a redrawing does not change it back.
  document.addEventListener("click", (event) => {
    const place = event.target.closest(".plot");
    if (place && event.target.textContent === "log") place.chosen = event.target.getAttribute("aria-pressed") === "true";
  });

  function listen() {
    const stream = new EventSource(`events?token=${token}&cursor=${live.cursor}`);
    stream.addEventListener("start", (event) => {
      const told = JSON.parse(event.data);
      if (!live.start) { live.lines = told.runs.map(() => ({})); live.steps = told.runs.map(() => -1); live.views = told.runs.map(() => ({})); }
      live.start = told;
      document.getElementById("names").textContent = told.runs.map((run) => run.name).join(", ");
      state();
    });
    stream.addEventListener("steps", (event) => {
      const told = JSON.parse(event.data);
      for (const run of told.runs) { add(run.run, run.points); live.steps[run.run] = run.step; }
      live.cursor = told.cursor.join("-");
      soon();
    });
    stream.addEventListener("view", (event) => views(JSON.parse(event.data)));
    stream.addEventListener("over", () => stream.close());
    stream.addEventListener("error", () => {
      // With the cursor in the address, nothing is sent a second time.
      stream.close();
      setTimeout(listen, 2000);
    });
  }
  html(body("now"), "p", { class: "quiet waiting" }, "No step was recorded yet.");
  listen();
})();
