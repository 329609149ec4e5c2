"use strict";
// Draws the curves from the data inside this page: nothing is fetched, and nothing is sent.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const W = 720, H = 440, L = 70, R = 20, T = 30, B = 50, LANE = 14, LANES = 56, COUNT = 44;
  const UP = "M0 -4.5L3.9 2.3L-3.9 2.3Z", CROSS = "M-3 -3L3 3M-3 3L3 -3";
  const by = (id) => document.getElementById(id);
  const hidden = new Set();
  let nearest = [];

  function option(select, value, words) {
    const one = document.createElement("option");
    one.value = value; one.textContent = words; select.append(one);
  }
  data.metrics.forEach((one, i) => option(by("metric"), i, one.title));
  const tasks = [...new Set(data.metrics.flatMap((one) => one.series.map((s) => s.task)))];
  tasks.forEach((task) => option(by("task"), task, task));

  const metric = () => data.metrics[by("metric").value || 0];
  const shown = () => metric().series.filter((one) => one.task === by("task").value);

  function axis(values, start, end, log) {
    const good = values.filter((v) => v !== null && isFinite(v) && (!log || v > 0));
    let low = Math.min(...good), high = Math.max(...good);
    if (!good.length) { low = log ? 0.1 : 0; high = 1; }
    const f = log ? Math.log10 : (v) => v;
    let a = f(low), b = f(high);
    const room = Math.max((b - a) * 0.04, log ? 0.05 : Math.abs(a) * 0.05 || 0.05);
    a -= room; b += room;
    const place = (v) => start + (end - start) * (f(v) - a) / (b - a);
    const ticks = [];
    if (log) {
      const step = Math.max(1, Math.ceil((Math.floor(b) - Math.ceil(a)) / 8));
      for (let p = Math.ceil(a); p <= b; p += step) ticks.push(10 ** p);
      if (!ticks.length) ticks.push(10 ** ((a + b) / 2));
    } else {
      const size = 10 ** Math.floor(Math.log10((b - a) / 4));
      const step = size * ([1, 2, 5, 10].find((k) => (b - a) / (k * size) <= 7) || 10);
      for (let v = Math.ceil(a / step) * step; v <= b; v += step) ticks.push(v);
    }
    return { place, ticks, has: (v) => v !== null && (!log || v > 0) };
  }

  function element(name, attributes, text) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.entries(attributes).forEach(([key, value]) => one.setAttribute(key, value));
    if (text !== undefined) one.textContent = text;
    return one;
  }
  const outcome = (seed) => seed[3] ? "diverged" : "completed";
  const words = (v) => v === null ? "not finite" : String(Number(v.toPrecision(4)));

  const at = (x, y) => `translate(${x} ${y})`;
  const line = (look, d) => element("path", { class: "line", d, fill: "none", stroke: look.colour,
    "stroke-width": look.width, "stroke-dasharray": look.dash });
  const mark = (look, x, y, open) => element("path", { class: "mark", d: look.marker, transform: at(x, y),
    fill: open || look.open ? "white" : look.colour, stroke: look.ink });

  /* What diverged, counted above the picture: a filled triangle, and a count where there is room. */
  function rail(svg, one, x, y, counted) {
    const lost = one.points.filter((p) => p.diverged), places = lost.map((p) => x.place(p.lr));
    const room = counted && places.every((place, i) => !i || place - places[i - 1] >= COUNT);
    lost.forEach((p, i) => {
      nearest.push({ x: places[i], y, label: one.label, p });
      svg.append(element("path", { class: "lost", d: UP, transform: at(places[i], y), fill: one.look.colour }));
      if (room) svg.append(element("text", { x: places[i] + 6, y: y + 3, "font-size": 10, fill: one.look.ink }, `${p.diverged}/${p.n}`));
    });
  }

  /* Every seed: an open dot, or a thin cross if it diverged and is finite all the same. */
  function seeds(svg, one, p, x, y) {
    p.seeds.filter((s) => y.has(s[1])).forEach((s) => {
      const place = [x.place(p.lr), y.place(s[1])];
      svg.append(s[3]
        ? element("path", { class: "seed diverged", d: CROSS, transform: at(...place), stroke: one.look.ink, "stroke-opacity": 0.75 })
        : element("circle", { class: "seed", cx: place[0], cy: place[1], r: 2.5, fill: "none", stroke: one.look.ink, "stroke-opacity": 0.75 }));
      nearest.push({ x: place[0], y: place[1], label: one.label, p, seed: s });
    });
  }

  function draw() {
    const series = shown().filter((one) => !hidden.has(one.label));
    const points = series.flatMap((one) => one.points);
    const logx = by("logx").checked, logy = by("logy").checked, dots = by("dots").checked;
    const values = points.flatMap((p) => [p.mean, p.low, p.high, ...(dots ? p.seeds.map((s) => s[1]) : [])]);
    const lanes = series.filter((one) => one.points.some((p) => p.diverged));
    const x = axis(points.map((p) => p.lr), L, W - R, logx);
    const lane = Math.min(LANE, LANES / Math.max(lanes.length, 1));
    const y = axis(values, H - B, T + lane * lanes.length, logy);
    const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "font-size": 12,
      "aria-label": `${metric().title} against learning rate` });
    x.ticks.forEach((t) => svg.append(element("path", { d: `M${x.place(t)} ${T}V${H - B}`, stroke: "#ddd" }),
      element("text", { x: x.place(t), y: H - B + 18, "text-anchor": "middle" }, words(t))));
    y.ticks.forEach((t) => svg.append(element("path", { d: `M${L} ${y.place(t)}H${W - R}`, stroke: "#ddd" }),
      element("text", { x: L - 6, y: y.place(t) + 4, "text-anchor": "end" }, words(t))));
    svg.append(element("text", { x: (L + W - R) / 2, y: H - 10, "text-anchor": "middle" }, "Learning rate"),
      element("text", { transform: `translate(16 ${(T + H - B) / 2}) rotate(-90)`, "text-anchor": "middle" }, metric().title));
    nearest = [];
    series.forEach((one) => {
      const band = one.points.filter((p) => y.has(p.mean) && y.has(p.low) && y.has(p.high));
      const ring = [...band.map((p) => [p.lr, p.high]), ...band.slice().reverse().map((p) => [p.lr, p.low])];
      const whole = (p) => Boolean(p) && y.has(p.mean) && !p.partial;
      const path = one.points.map((p, i) => whole(p)
        ? `${whole(one.points[i - 1]) ? "L" : "M"}${x.place(p.lr)} ${y.place(p.mean)}` : "").join("");
      svg.append(element("polygon", { points: ring.map(([a, b]) => `${x.place(a)},${y.place(b)}`).join(" "), fill: one.look.colour, "fill-opacity": 0.15 }),
        line(one.look, path));
      if (lanes.includes(one)) rail(svg, one, x, T + lane * (lanes.indexOf(one) + 0.5), lane === LANE);
      one.points.filter((p) => y.has(p.mean)).forEach((p) => {
        const place = [x.place(p.lr), y.place(p.mean)];
        svg.append(mark(one.look, ...place, p.partial));
        nearest.push({ x: place[0], y: place[1], label: one.label, p });
      });
      if (dots) one.points.forEach((p) => seeds(svg, one, p, x, y));
    });
    svg.addEventListener("pointermove", hover);
    by("picture").replaceChildren(svg);
  }

  function hover(event) {
    const box = event.currentTarget.getBoundingClientRect();
    const at = [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * H / box.height];
    const far = (one) => Math.hypot(one.x - at[0], one.y - at[1]);
    const one = nearest.reduce((a, b) => !a || far(b) < far(a) ? b : a, null);
    if (!one || far(one) > 60) { by("hover").textContent = "\u00a0"; return; }
    if (one.seed) {
      by("hover").textContent = `${one.label} at ${words(one.p.lr)}, seed ${one.seed[0]}: ${words(one.seed[1])}, ${outcome(one.seed)}`;
      return;
    }
    const p = one.p, spread = p.low === null ? "" : ` (${words(p.low)} to ${words(p.high)})`;
    by("hover").textContent = `${one.label} at ${words(p.lr)}: ${words(p.mean)}${spread}, ${p.n} seeds` +
      (p.diverged ? `, ${p.diverged} of them diverged` : "");
  }

  function legend() {
    by("legend").replaceChildren(...shown().map((series) => {
      const button = document.createElement("button"), sample = element("svg", { viewBox: "-18 -6 36 12", "aria-hidden": "true" });
      button.type = "button"; sample.append(line(series.look, "M-18 0H18"), mark(series.look, 0, 0));
      button.setAttribute("aria-pressed", String(!hidden.has(series.label)));
      button.append(sample, series.label);
      button.addEventListener("click", () => {
        if (!hidden.delete(series.label)) hidden.add(series.label);
        legend(); draw();
      });
      return button;
    }));
  }

  function save() {
    const cell = (v) => v === null ? "" : /[",\n]/.test(v) ? `"${String(v).replace(/"/g, '""')}"` : v;
    const rows = [["value", "task", "series", "lr", "seed", "loss", "outcome", "trial"]];
    data.metrics.forEach((m) => m.series.forEach((s) => s.points.forEach((p) => p.seeds.forEach((one) =>
      rows.push([m.name, s.task, s.label, p.lr, one[0], one[1], outcome(one), one[2]])))));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([rows.map((row) => row.map(cell).join(",")).join("\n")], { type: "text/csv" }));
    link.download = "trials.csv"; link.click();
  }

  const all = () => { legend(); draw(); };
  ["metric", "task", "logx", "logy", "dots"].forEach((id) => by(id).addEventListener("change", all));
  by("save").addEventListener("click", save);
  by("controls").hidden = false;
  all();
})();
