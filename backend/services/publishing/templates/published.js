"use strict";
// Draws the curves from the data inside this page: nothing is fetched, and nothing is sent.
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5b5b5b", "#8c510a"];
  const W = 720, H = 440, L = 70, R = 20, T = 30, B = 50;
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
  const shown = () => metric().series
    .map((series, i) => ({ series, colour: colours[i % colours.length] }))
    .filter((one) => one.series.task === by("task").value);

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
  const words = (v) => v === null ? "not finite" : String(Number(v.toPrecision(4)));

  function draw() {
    const series = shown().filter((one) => !hidden.has(one.series.label));
    const points = series.flatMap((one) => one.series.points);
    const logx = by("logx").checked, logy = by("logy").checked, dots = by("dots").checked;
    const values = points.flatMap((p) => [p.mean, p.low, p.high, ...(dots ? p.seeds.map((s) => s[1]) : [])]);
    const x = axis(points.map((p) => p.lr), L, W - R, logx);
    const y = axis(values, H - B, T, logy);
    const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "font-size": 12,
      "aria-label": `${metric().title} against learning rate` });
    x.ticks.forEach((t) => svg.append(element("path", { d: `M${x.place(t)} ${T}V${H - B}`, stroke: "#ddd" }),
      element("text", { x: x.place(t), y: H - B + 18, "text-anchor": "middle" }, words(t))));
    y.ticks.forEach((t) => svg.append(element("path", { d: `M${L} ${y.place(t)}H${W - R}`, stroke: "#ddd" }),
      element("text", { x: L - 6, y: y.place(t) + 4, "text-anchor": "end" }, words(t))));
    svg.append(element("text", { x: (L + W - R) / 2, y: H - 10, "text-anchor": "middle" }, "Learning rate"),
      element("text", { transform: `translate(16 ${(T + H - B) / 2}) rotate(-90)`, "text-anchor": "middle" }, metric().title));
    nearest = [];
    series.forEach(({ series: one, colour }, number) => {
      const good = one.points.filter((p) => y.has(p.mean));
      const band = good.filter((p) => y.has(p.low) && y.has(p.high));
      const ring = [...band.map((p) => [p.lr, p.high]), ...band.slice().reverse().map((p) => [p.lr, p.low])];
      svg.append(element("polygon", { points: ring.map(([a, b]) => `${x.place(a)},${y.place(b)}`).join(" "), fill: colour, "fill-opacity": 0.15 }),
        element("polyline", { points: good.map((p) => `${x.place(p.lr)},${y.place(p.mean)}`).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }));
      one.points.forEach((p) => {
        const at = y.has(p.mean) ? y.place(p.mean) : T;
        nearest.push({ x: x.place(p.lr), y: at, label: one.label, p });
        if (y.has(p.mean)) svg.append(element("circle", { cx: x.place(p.lr), cy: at, r: 3.5, fill: colour }));
        if (p.diverged) svg.append(element("text", { x: x.place(p.lr), y: T + 12 + 10 * (number % 4), fill: colour, "text-anchor": "middle" }, "×"));
        if (dots) p.seeds.filter((s) => y.has(s[1])).forEach((s) => svg.append(element("circle", { cx: x.place(p.lr), cy: y.place(s[1]), r: 1.8, fill: colour, "fill-opacity": 0.5 })));
      });
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
    const p = one.p, spread = p.low === null ? "" : ` (${words(p.low)} to ${words(p.high)})`;
    by("hover").textContent = `${one.label} at ${words(p.lr)}: ${words(p.mean)}${spread}, ${p.n} seeds` +
      (p.diverged ? `, ${p.diverged} of them diverged` : "");
  }

  function legend() {
    by("legend").replaceChildren(...shown().map(({ series, colour }) => {
      const button = document.createElement("button"), mark = document.createElement("i");
      button.type = "button"; mark.style.background = colour;
      button.setAttribute("aria-pressed", String(!hidden.has(series.label)));
      button.append(mark, series.label);
      button.addEventListener("click", () => {
        if (!hidden.delete(series.label)) hidden.add(series.label);
        legend(); draw();
      });
      return button;
    }));
  }

  function save() {
    const cell = (v) => v === null ? "" : /[",\n]/.test(v) ? `"${String(v).replace(/"/g, '""')}"` : v;
    const rows = [["value", "task", "series", "lr", "seed", "loss", "trial"]];
    data.metrics.forEach((m) => m.series.forEach((s) => s.points.forEach((p) => p.seeds.forEach((one) =>
      rows.push([m.name, s.task, s.label, p.lr, one[0], one[1], one[2]])))));
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
