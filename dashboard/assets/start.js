/* The start page: a race drawn from stored trials, and a study's curve while it grows. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const DASHES = { dot: "2 5", dash: "7 4", longdash: "11 4", dashdot: "8 4 2 4" };
  const RAIL = 22;
  const LINE = 15;
  const keep = () => window.dash_clientside.no_update;

  function make(tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    if (text !== undefined) {
      made.textContent = text;
    }
    return made;
  }

  /* --- One small chart --------------------------------------------------------------------- */

  const place = (axis, value) => {
    const at = axis.log ? Math.log10(value) : value;
    const [low, high] = axis.log ? axis.range.map(Math.log10) : axis.range;
    return (at - low) / (high - low);
  };

  /* Where things are drawn; what leaves the scale on top stays in sight, on the rail. */
  function room(box, chart) {
    const edge = { left: 44, right: chart.room, top: 6 + RAIL, bottom: 36 };
    const [width, height] = [box.clientWidth, box.clientHeight];
    const inner = { w: width - edge.left - edge.right, h: height - edge.top - edge.bottom };
    const up = (value) => (value === null ? 2 : place(chart.y, Math.max(value, chart.y.range[0])));
    return {
      width, height, edge, inner,
      x: (value) => edge.left + inner.w * place(chart.x, value),
      y: (value) => (up(value) > 1 ? edge.top - RAIL / 2 : edge.top + inner.h * (1 - up(value))),
    };
  }

  function axes(chart, at) {
    const { edge, inner, width, height } = at;
    const bottom = edge.top + inner.h;
    const made = [make("rect", { class: "chart-rail", x: edge.left, y: edge.top - RAIL, width: inner.w, height: RAIL, rx: 3 })];
    chart.y.ticks.forEach((tick) => {
      made.push(make("line", { class: "chart-grid", x1: edge.left, x2: edge.left + inner.w, y1: at.y(tick), y2: at.y(tick) }));
      made.push(make("text", { class: "chart-tick", x: edge.left - 6, y: at.y(tick) + 4, "text-anchor": "end" }, String(tick)));
    });
    chart.x.ticks.forEach((tick) =>
      made.push(make("text", { class: "chart-tick", x: at.x(tick), y: bottom + 16, "text-anchor": "middle" }, String(tick)))
    );
    made.push(make("text", { class: "chart-title", x: edge.left + inner.w / 2, y: height - 4, "text-anchor": "middle" }, chart.x.title));
    made.push(make("text", { class: "chart-title", transform: "translate(11 " + (edge.top + inner.h / 2) + ") rotate(-90)", "text-anchor": "middle" }, chart.y.title));
    if (chart.reference) {
      const y = at.y(chart.reference.value);
      made.push(make("line", { class: "chart-reference", x1: edge.left, x2: edge.left + inner.w, y1: y, y2: y }));
    }
    return made;
  }

  /* Above the curves, so that none strikes them out. */
  function notes(chart, { edge, inner, y }) {
    const made = [make("text", { class: "chart-note", x: edge.left + 6, y: edge.top - RAIL / 2 + 4 }, "off the chart")];
    if (chart.reference) {
      const place = { class: "chart-note", x: edge.left + inner.w - 4, y: y(chart.reference.value) - 5, "text-anchor": "end" };
      made.push(make("text", place, chart.reference.words));
    }
    return made;
  }

  function curve(line, at) {
    const points = line.points.map(([x, y]) => at.x(x).toFixed(1) + " " + at.y(y).toFixed(1));
    const look = { class: line.thin ? "chart-thin" : "chart-line", d: "M" + points.join("L"), stroke: line.style.colour };
    if (line.opacity < 1) {
      look["stroke-opacity"] = line.opacity;
    }
    if (!line.thin && DASHES[line.style.dash]) {
      look["stroke-dasharray"] = DASHES[line.style.dash];
    }
    const dots = line.dots
      ? line.points.map(([x, y]) => make("circle", { cx: at.x(x), cy: at.y(y), r: 3, fill: line.style.colour, opacity: line.opacity }))
      : [];
    return points.length ? [make("path", look), ...dots] : [];
  }

  /* Names stand beside the ends of their curves, moved apart where those lie together. */
  function labels(chart, at) {
    const apart = chart.labels.some((label) => label.words) ? 2 * LINE + 2 : LINE;
    const wanted = chart.labels.map((label) => ({ ...label, y: at.y(label.value) })).sort((a, b) => a.y - b.y);
    wanted.forEach((label, index) => {
      const above = wanted[index - 1];
      label.y = above ? Math.max(label.y, above.y + apart) : label.y;
    });
    const lowest = at.height - at.edge.bottom + LINE - apart;
    for (let index = wanted.length - 1; index >= 0; index -= 1) {
      const below = wanted[index + 1];
      wanted[index].y = Math.min(wanted[index].y, below ? below.y - apart : lowest);
    }
    return wanted.flatMap(({ y, style, words }) => {
      const x = at.edge.left + at.inner.w + 8;
      const name = make("text", { class: "chart-name", x, y: y + 2 }, style.short);
      const told = make("text", { class: "chart-told", x, y: y + LINE }, words);
      [name, told].forEach((text) => {
        text.style.setProperty("--ink-light", style.light);
        text.style.setProperty("--ink-dark", style.dark);
      });
      return [name, told];
    });
  }

  const charts = new Map();

  function draw(id, chart) {
    const box = document.getElementById(id);
    if (!box || !chart || box.clientWidth < 120) {
      return;
    }
    const at = room(box, chart);
    const svg = make("svg", { width: at.width, height: at.height, role: "img", "aria-label": chart.words });
    svg.append(...axes(chart, at), ...chart.lines.flatMap((line) => curve(line, at)), ...notes(chart, at));
    if (chart.labels) {
      svg.append(...labels(chart, at));
    }
    box.replaceChildren(svg);
    if (charts.get(id)?.box !== box) {
      sizes.observe(box);
    }
    charts.set(id, { box, chart });
  }

  const sizes = new ResizeObserver((entries) =>
    entries.forEach(({ target }) => {
      const known = charts.get(target.id);
      const drawn = target.firstElementChild;
      if (known && drawn && Number(drawn.getAttribute("width")) !== target.clientWidth) {
        draw(target.id, known.chart);
      }
    })
  );

  /* --- The race ---------------------------------------------------------------------------- */

  const told = (lane) => {
    const end = lane.median[lane.median.length - 1];
    return lane.broken ? lane.broken + " of " + lane.losses.length + " broke" : "loss " + Number(end.toPrecision(2));
  };

  function raceChart({ race, styles, scale }, rate) {
    const along = (losses) => losses.map((loss, index) => [race.epochs[index], loss]);
    const thin = rate.lanes.flatMap((lane) =>
      lane.losses.map((losses) => ({ thin: true, style: styles[lane.method], points: along(losses) }))
    );
    const thick = rate.lanes.map((lane) => ({ style: styles[lane.method], points: along(lane.median) }));
    return {
      ...scale,
      words: rate.words + " " + rate.ahead,
      reference: { value: race.initial, words: "before training" },
      lines: [...thin, ...thick],
      labels: rate.lanes.map((lane) => ({
        style: styles[lane.method], value: lane.median[lane.median.length - 1], words: told(lane),
      })),
    };
  }

  const nearest = (rates, lr) => {
    const far = (rate) => Math.abs(Math.log(rate.lr / lr));
    return rates.reduce((best, rate, index) => (far(rate) < far(rates[best]) ? index : best), 0);
  };

  function showRate(given, index) {
    const rate = given.race.rates[index];
    const slider = document.getElementById("start-slider");
    slider.value = index;
    slider.setAttribute("aria-valuetext", String(rate.lr));
    slider.style.setProperty("--share", index / (given.race.rates.length - 1));
    document.getElementById("start-number").textContent = rate.lr;
    document.getElementById("start-words").textContent = rate.words;
    document.getElementById("start-ahead").textContent = rate.ahead;
    draw("start-picture", raceChart(given, rate));
    return rate;
  }

  /* A plain slider of the browser's: fingers, arrow keys, Home and End work as everywhere. */
  function sliderOn(track, count) {
    const known = document.getElementById("start-slider");
    if (known) {
      return known;
    }
    const slider = document.createElement("input");
    Object.assign(slider, { id: "start-slider", className: "rate-slider", type: "range", min: 0, max: count - 1, step: 1 });
    slider.setAttribute("aria-label", "Learning rate");
    track.prepend(slider);
    return slider;
  }

  /* Drawn while the finger moves; the address follows when it rests. */
  function showRace(given, lr) {
    const track = document.getElementById("start-track");
    if (!track || !given) {
      return keep();
    }
    const slider = sliderOn(track, given.race.rates.length);
    slider.oninput = () => {
      const rate = showRate(given, Number(slider.value));
      document.getElementById("start-asked").textContent = "";
      window.dash_clientside.set_props("start-rate", { data: rate.lr });
    };
    showRate(given, nearest(given.race.rates, lr > 0 ? lr : given.first));
    return keep();
  }

  const showCurve = (chart) => {
    draw("start-chart", chart);
    return keep();
  };

  Object.assign(window.etascope, { showRace, showCurve });
})();
