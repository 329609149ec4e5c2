/* Draws a figure of lines, dots and words as SVG, within a few milliseconds.

   Plotly takes thirty and more for a picture of this kind, and ours must follow a finger on a slider.
   A figure is written as for plotly, of which this knows the little that the illustrated pages use. */
(function () {
  "use strict";

  const { number } = window.etascope.parts;
  const fixed = (value) => Number(value.toFixed(1));
  const escaped = (text) =>
    String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[sign]));

  function tag(name, attributes, inside = "") {
    const written = Object.entries(attributes)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([key, value]) => ` ${key}="${typeof value === "number" ? fixed(value) : escaped(value)}"`);
    return `<${name}${written.join("")}>${inside}</${name}>`;
  }

  /* --- Axes ------------------------------------------------------------------------------------ */

  /* Where an axis lies, in pixels from `from` to `to`, and what it shows. */
  function axisAt(axis, from, to) {
    const [low, high] = axis.range;
    const log = axis.type === "log";
    const place = (value) => from + (((log ? Math.log10(value) : value) - low) / (high - low)) * (to - from);
    return { axis, log, low, high, from, to, place };
  }

  function axesOf(layout, box) {
    const axes = {};
    Object.keys(layout).forEach((key) => {
      const name = key.replace("axis", "");
      if (/^x\d*$/.test(name) && key.includes("axis")) {
        axes[name] = axisAt(layout[key], box.left, box.right);
      } else if (/^y\d*$/.test(name) && key.includes("axis")) {
        const [low, high] = layout[key].domain || [0, 1];
        const height = (share) => box.bottom - share * (box.bottom - box.top);
        axes[name] = axisAt(layout[key], height(low), height(high));
      }
    });
    return axes;
  }

  /* A step of 1, 2 or 5 times a power of ten, so that some pixels are between two ticks. */
  function stepOf(span, most) {
    const rough = span / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 5, 10].find((times) => times * power >= rough * (1 - 1e-9));
  }

  function label(value, step) {
    if (!value || Math.abs(value) >= 1e4 || Math.abs(value) < 1e-3) {
      return number(value);
    }
    return value.toFixed(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))).replace("-", "−");
  }

  /* Ticks as [value, what is written]. */
  function ticksOf({ axis, log, low, high, from, to }, apart) {
    const most = Math.max(Math.abs(to - from) / apart, 1);
    const step = axis.dtick || Math.max(stepOf(high - low, most), axis.tickformat === "d" || log ? 1 : 0);
    const count = Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
    const first = Math.ceil(low / step - 1e-9);
    const places = Array.from({ length: Math.max(count, 0) }, (_, i) => (first + i) * step);
    return places.map((place) => (log ? [10 ** place, number(10 ** place)] : [place, label(place, step)]));
  }

  function drawAcross(x, bottom, top, look) {
    const { axis } = x;
    const lines = ticksOf(x, 56).map(([value, text]) => {
      const at = x.place(value);
      const words = axis.showticklabels === false ? "" : tag("text", { x: at, y: bottom + 20, "text-anchor": "middle" }, text);
      return (
        tag("line", { x1: at, x2: at, y1: bottom, y2: top, stroke: look.xaxis.gridcolor }) +
        tag("line", { x1: at, x2: at, y1: bottom, y2: bottom + 5, stroke: look.xaxis.linecolor }) +
        words
      );
    });
    const title = axis.title
      ? tag("text", { x: (x.from + x.to) / 2, y: bottom + 38, "text-anchor": "middle", "font-size": 14 }, escaped(axis.title.text))
      : "";
    return lines.join("") + tag("line", { x1: x.from, x2: x.to, y1: bottom, y2: bottom, stroke: look.xaxis.linecolor }) + title;
  }

  function drawUp(y, left, right, look) {
    const lines = ticksOf(y, 26).map(([value, text]) => {
      const at = y.place(value);
      return (
        tag("line", { x1: left, x2: right, y1: at, y2: at, stroke: look.yaxis.gridcolor }) +
        tag("line", { x1: left - 5, x2: left, y1: at, y2: at, stroke: look.yaxis.linecolor }) +
        tag("text", { x: left - 8, y: at, "text-anchor": "end", "dominant-baseline": "central" }, text)
      );
    });
    const middle = fixed((y.from + y.to) / 2);
    const turned = { transform: `translate(14 ${middle}) rotate(-90)`, "text-anchor": "middle", "font-size": 14 };
    const title = tag("text", turned, escaped(y.axis.title.text));
    return lines.join("") + tag("line", { x1: left, x2: left, y1: y.from, y2: y.to, stroke: look.yaxis.linecolor }) + title;
  }

  /* --- Traces ---------------------------------------------------------------------------------- */

  const DASHES = { solid: () => null, dot: (w) => [w, 1.6 * w], dash: (w) => [3 * w, 2 * w], dashdot: (w) => [4 * w, 2 * w, w, 2 * w] };
  const dashes = ({ dash, width }) => {
    const parts = (DASHES[dash] || DASHES.solid)(width);
    return parts && parts.map(fixed).join(" ");
  };

  function pointsOf(trace, axes) {
    const x = axes[trace.xaxis || "x"];
    const y = axes[trace.yaxis || "y"];
    return trace.x.map((value, i) => (value === null || trace.y[i] === null ? null : [x.place(value), y.place(trace.y[i])]));
  }

  function drawLine(trace, points, clip) {
    let pen = "M";
    const path = points.map((at) => {
      const move = at === null ? "" : `${pen}${fixed(at[0])} ${fixed(at[1])}`;
      pen = at === null ? "M" : "L";
      return move;
    });
    const { color, width } = trace.line;
    const drawn = { d: path.join(""), fill: "none", stroke: color, "stroke-width": width, "stroke-dasharray": dashes(trace.line) };
    return tag("path", { ...drawn, "stroke-linejoin": "round", "clip-path": `url(#${clip})` });
  }

  /* Outlines of half-size r around 0. */
  const SYMBOLS = {
    circle: (r) => `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`,
    diamond: (r) => `M${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0L0 ${-1.3 * r}Z`,
    "triangle-down": (r) => `M${-1.15 * r} ${-r / 2}L${1.15 * r} ${-r / 2}L0 ${r}Z`,
    "triangle-up": (r) => `M${-1.15 * r} ${r / 2}L${1.15 * r} ${r / 2}L0 ${-r}Z`,
    arrow: (r) => `M0 0L${-1.7 * r} ${0.65 * r}L${-1.7 * r} ${-0.65 * r}Z`,
  };

  const one = (list, i) => (Array.isArray(list) ? list[i] : list);

  function hovered(trace, i) {
    const shown = { x: trace.x[i], y: trace.y[i], customdata: one(trace.customdata, i), text: one(trace.text, i) };
    return trace.hovertemplate
      .replace(/%\{(\w+)[^}]*\}/g, (_, name) => (typeof shown[name] === "number" && name !== "customdata" ? number(shown[name]) : shown[name]))
      .replace("<extra></extra>", "")
      .replace(/<br>/g, "\n");
  }

  function drawMarkers(trace, points) {
    const { symbol: shape = "circle", color, line, size, angleref } = trace.marker;
    return points
      .map((at, i) => {
        const symbol = one(shape, i);
        const open = symbol && symbol.endsWith("-open");
        const before = points[i - 1];
        if (at === null || !one(size, i) || (angleref && !before)) {
          return "";
        }
        const turned = angleref ? ` rotate(${fixed((Math.atan2(at[1] - before[1], at[0] - before[0]) * 180) / Math.PI)})` : "";
        const ink = one(color, i);
        const stroke = open ? ink : line && line.width ? line.color : null;
        const drawn = { d: SYMBOLS[symbol.replace("-open", "")](one(size, i) / 2), fill: open ? "none" : ink, stroke };
        const title = trace.hovertemplate ? tag("title", {}, escaped(hovered(trace, i))) : "";
        return tag("path", { ...drawn, "stroke-width": line && line.width, transform: `translate(${fixed(at[0])} ${fixed(at[1])})${turned}` }, title);
      })
      .join("");
  }

  const ANCHOR = { left: "end", right: "start", center: "middle" };
  const DOWN = { top: -10, middle: 0, bottom: 12 };

  /* Words have a rim of the paper's colour, so that they can be read over lines. */
  function drawText(trace, points, paper) {
    return points
      .map((at, i) => {
        const [up, side] = (one(trace.textposition, i) || "middle center").split(" ");
        const aside = side === "center" ? 0 : (trace.marker ? 12 : 6) * (side === "right" ? 1 : -1);
        const lines = String(trace.text[i]).split("<br>");
        const inside = lines.map((line, row) => tag("tspan", { x: at[0] + aside, dy: row ? 16 : 0 }, escaped(line.trim())));
        const ink = { fill: trace.textfont.color, "font-size": trace.textfont.size, stroke: paper, "stroke-width": 3, "paint-order": "stroke" };
        return tag("text", { ...ink, y: at[1] + DOWN[up], "text-anchor": ANCHOR[side], "dominant-baseline": "central" }, inside.join(""));
      })
      .join("");
  }

  function drawTrace(trace, axes, clips, paper) {
    const points = pointsOf(trace, axes);
    const parts = { lines: () => drawLine(trace, points, clips[trace.yaxis || "y"]), markers: () => drawMarkers(trace, points), text: () => drawText(trace, points, paper) };
    return points.length ? trace.mode.split("+").map((part) => parts[part]()).join("") : "";
  }

  /* --- What stands around them ------------------------------------------------------------------ */

  function drawShape(shape, axes, box) {
    const across = (x) => (shape.xref === "paper" ? box.left + x * (box.right - box.left) : axes[shape.xref || "x"].place(x));
    const up = (y) => (shape.yref === "paper" ? box.bottom - y * (box.bottom - box.top) : axes[shape.yref || "y"].place(y));
    const [x0, x1, y0, y1] = [across(shape.x0), across(shape.x1), up(shape.y0), up(shape.y1)];
    if (shape.type === "rect") {
      return tag("rect", { x: x0, y: Math.min(y0, y1), width: x1 - x0, height: Math.abs(y1 - y0), fill: shape.fillcolor });
    }
    return tag("line", { x1: x0, x2: x1, y1: y0, y2: y1, stroke: shape.line.color, "stroke-width": shape.line.width, "stroke-dasharray": dashes(shape.line) });
  }

  const drawNote = (note, axes) =>
    tag(
      "text",
      { x: axes[note.xref].place(note.x), y: axes[note.yref.split(" ")[0]].to - 6, fill: note.font.color, "font-size": note.font.size, "text-anchor": { left: "start", right: "end", center: "middle" }[note.xanchor] },
      escaped(note.text)
    );

  function drawLegend(figure, box) {
    const named = figure.data.filter((trace) => trace.showlegend !== false);
    const ordered = figure.layout.legend.traceorder === "reversed" ? named.reverse() : named;
    // Names beside each other where there is room, else in rows that grow upwards.
    const apart = Math.max(84, ...ordered.map(({ name }) => 46 + 7.5 * name.length));
    const inRow = Math.max(1, Math.floor((box.right - box.left) / apart));
    const rows = Math.ceil(ordered.length / inRow);
    return ordered
      .map((trace, i) => {
        const [x, y] = [box.left + apart * (i % inRow), box.top - 16 - 18 * (rows - 1 - Math.floor(i / inRow))];
        const points = [[x, y], [x + 26, y]];
        const sample = trace.mode === "markers" ? drawMarkers({ marker: trace.marker, x: [0] }, [[x + 13, y]]) : drawLine(trace, points, "");
        return sample + tag("text", { x: x + 34, y, "dominant-baseline": "central" }, escaped(trace.name));
      })
      .join("");
  }

  function draw(node) {
    const { figure, clientWidth: width, clientHeight: height } = node;
    if (!width || !height) {
      return;
    }
    const { layout, data } = figure;
    const look = layout.template.layout;
    const box = { left: layout.margin.l, right: width - layout.margin.r, top: layout.margin.t, bottom: height - layout.margin.b };
    const axes = axesOf(layout, box);
    const ups = Object.keys(axes).filter((name) => name.startsWith("y"));
    const clips = Object.fromEntries(ups.map((name) => [name, `${node.id}-${name}`]));
    const parts = ups.map((name) => {
      const y = axes[name];
      const area = tag("rect", { x: box.left, y: y.to, width: box.right - box.left, height: y.from - y.to });
      return tag("clipPath", { id: clips[name] }, area) + drawAcross(axes[name.replace("y", "x")], y.from, y.to, look) + drawUp(y, box.left, box.right, look);
    });
    const shapes = layout.shapes.map((shape) => drawShape(shape, axes, box));
    const traces = data.map((trace) => drawTrace(trace, axes, clips, look.paper_bgcolor));
    const notes = (layout.annotations || []).map((note) => drawNote(note, axes));
    const legend = layout.legend ? drawLegend(figure, box) : "";
    const page = { width, height, viewBox: `0 0 ${width} ${height}`, fill: look.font.color, "font-size": 13, "aria-hidden": "true" };
    node.innerHTML = tag("svg", page, [...shapes, ...parts, ...traces, ...notes, legend].join(""));
  }

  const watching = new ResizeObserver((entries) => entries.forEach(({ target }) => target.figure && draw(target)));

  /* Draws into an element, and again whenever its size changes. */
  function plot(id, figure) {
    const node = document.getElementById(id);
    if (node) {
      node.figure = figure;
      watching.observe(node);
      draw(node);
    }
  }

  Object.assign(window.etascope, { plot });
})();
