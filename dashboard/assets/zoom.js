/* A new figure in place of an old one, with the zoom and the hidden curves of whoever looks. */
(function () {
  "use strict";

  const AXES = ["xaxis", "yaxis", "yaxis2"];

  /* What each graph was last given, by id: its revision and the ends of its axes. */
  const given = {};

  const plotOf = (graph) => document.querySelector("#" + graph + " .js-plotly-plot");
  const endsOf = (layout) => AXES.map((axis) => JSON.stringify((layout[axis] || {}).range));

  function zoomed(layout, plot, before) {
    const kept = Object.assign({}, layout);
    endsOf(plot.layout).forEach((ends, index) => {
      if (ends && ends !== before.ends[index]) {
        const range = JSON.parse(ends);
        kept[AXES[index]] = Object.assign({}, layout[AXES[index]], { range, autorange: false });
      }
    });
    return kept;
  }

  function hidden(data, plot) {
    const groups = new Set(plot.data.filter((trace) => trace.visible === "legendonly").map((trace) => trace.legendgroup));
    return data.map((trace) =>
      groups.has(trace.legendgroup) ? Object.assign({}, trace, { visible: "legendonly" }) : trace
    );
  }

  /* A graph's first figure comes before there is a plot; a page that was left has another plot. */
  const samePlot = (before, now) => before && (!before.plot || before.plot === now.plot);

  /* --- A zoom as an address has it: from and to along each axis, nothing where it is all shown - */

  const isLog = (layout, axis) => (layout[axis] || {}).type === "log";
  const four = (number) => String(Number(number.toPrecision(4)));

  function zoomText(layout, ends) {
    const parts = AXES.map((axis, index) => {
      const now = (layout[axis] || {}).range;
      if (!now || !ends[index] || JSON.stringify(now) === ends[index]) {
        return ",";
      }
      return now.map((end) => four(isLog(layout, axis) ? 10 ** end : end)).join(",");
    });
    return parts.join(",").replace(/,+$/, "");
  }

  /* The range of every axis that a zoom names; an address may hold anything. */
  function rangesIn(text, layout) {
    const numbers = (text || "").split(",").map((part) => (part === "" ? NaN : Number(part)));
    return AXES.map((axis, index) => {
      const ends = [numbers[2 * index], numbers[2 * index + 1]];
      const range = isLog(layout, axis) ? ends.map(Math.log10) : ends;
      return layout[axis] && range.every(Number.isFinite) && range[0] < range[1] ? range : null;
    });
  }

  function zoomedTo(text, layout) {
    const kept = Object.assign({}, layout);
    rangesIn(text, layout).forEach((range, index) => {
      if (range) {
        kept[AXES[index]] = Object.assign({}, layout[AXES[index]], { range, autorange: false });
      }
    });
    return kept;
  }

  /* What was told is not asked for again: a picture on its way must not be moved under it. */
  function tell(graph, text, known) {
    given[graph].told = text;
    return text === (known || "") ? window.dash_clientside.no_update : text;
  }

  /* A height that stays is not said again: every word to Dash goes round all of its components. */
  function styleFor(graph, figure) {
    const height = figure.layout.height + "px";
    const box = document.getElementById(graph);
    return box && box.style.height === height ? window.dash_clientside.no_update : { height };
  }

  /* What plotly keeps free around all rows of a legend. */
  const LEGEND_EDGE = 8;

  /*
   * Plotly draws a legend where the margins were, moves the margins, and may leave it at that: after
   * a picture with other margins a legend below would lie over the axis' title. Told from the whole
   * picture's foot instead, its place needs no margins.
   */
  function pinned({ data, layout }) {
    const { legend, margin } = layout;
    if (!legend || !margin || !layout.height || !(legend.y < 0) || legend.yref === "container") {
      return { data, layout };
    }
    const [height, b] = [layout.height + LEGEND_EDGE, margin.b + LEGEND_EDGE];
    const y = (b + legend.y * (height - margin.t - b)) / height;
    const placed = { ...legend, yref: "container", y };
    return { data, layout: { ...layout, height, margin: { ...margin, b }, legend: placed } };
  }

  /* The same place told from the panels, for a picture whose height is to change. */
  function unpinned({ legend, height, margin }) {
    if (!legend || legend.yref !== "container") {
      return legend;
    }
    const y = (legend.y * height - margin.b) / (height - margin.t - margin.b);
    return { ...legend, yref: "paper", y };
  }

  /* [figure, style, zoom]: another question begins with all it has to show. */
  function keepView(graph, figure, zoom) {
    const [shown, ...rest] = withView(graph, pinned(figure), zoom);
    const { scrubFigure } = window.etascope;
    return [scrubFigure ? scrubFigure(graph, shown) : shown, ...rest];
  }

  function withView(graph, figure, zoom) {
    const plot = plotOf(graph);
    const before = given[graph];
    const style = styleFor(graph, figure);
    const now = { plot, revision: figure.layout.uirevision, ends: endsOf(figure.layout) };
    given[graph] = now;
    if (samePlot(before, now) && before.revision !== now.revision) {
      return [figure, style, tell(graph, "", zoom)];
    }
    if (!plot || !plot.layout || !samePlot(before, now)) {
      const layout = zoomedTo(zoom, figure.layout);
      return [Object.assign({}, figure, { layout }), style, tell(graph, zoom || "", zoom)];
    }
    const layout = zoomed(figure.layout, plot, before);
    const kept = Object.assign({}, figure, { layout, data: hidden(figure.data, plot) });
    return [kept, style, tell(graph, zoomText(layout, now.ends), zoom)];
  }

  /* Somebody zoomed: the address is to say so. */
  function readZoom(graph, known) {
    const plot = plotOf(graph);
    if (!plot || !plot.layout || !given[graph]) {
      return window.dash_clientside.no_update;
    }
    listen(graph, plot);
    return tell(graph, zoomText(plot.layout, given[graph].ends), known);
  }

  /* The address, or a button, asks for a zoom. */
  function showZoom(graph, text) {
    const plot = plotOf(graph);
    if (!plot || !plot.layout || !given[graph] || given[graph].told === text) {
      return;
    }
    given[graph].told = text;
    const changes = {};
    rangesIn(text, plot.layout).forEach((range, index) => {
      const all = given[graph].ends[index];
      if (range || all) {
        changes[AXES[index] + ".range"] = range || JSON.parse(all);
      }
    });
    window.Plotly.relayout(plot, changes);
  }

  /* Plotly's own double click would show every exploded run instead of the chosen scale. */
  function listen(graph, plot) {
    if (!plot.listens) {
      plot.listens = true;
      plot.on("plotly_doubleclick", () => showZoom(graph, ""));
    }
  }

  document.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest && event.target.closest(".dash-graph .js-plotly-plot");
    const graph = plot && plot.closest(".dash-graph").id;
    if (graph && given[graph] && plot._context.doubleClick === false) {
      listen(graph, plot);
    }
  }, true);

  /* --- Pictures that were shown before: there at once, unless the server then says otherwise ----- */

  const MOST_KEPT = 30;

  /* Figures by their mark, the last used one last; marks by what was asked for; what is shown. */
  const kept = new Map();
  const marks = new Map();
  const shown = {};

  /* Plotly writes into what it draws: hidden curves, ends of axes. Data it only reads. */
  function copied({ data, layout }) {
    const own = (value) => (Object.prototype.toString.call(value) === "[object Object]" ? Object.assign({}, value) : value);
    const trace = (one) => Object.fromEntries(Object.entries(one).map(([name, value]) => [name, own(value)]));
    return { data: data.map(trace), layout: structuredClone(layout) };
  }

  function keep(mark, figure) {
    kept.delete(mark);
    kept.set(mark, figure);
    if (kept.size > MOST_KEPT) {
      kept.delete(kept.keys().next().value);
    }
  }

  /* A control was touched: the server is being asked, and what it sent before is shown meanwhile. */
  function recall(graph, store, zoom, asked) {
    const mark = marks.get(JSON.stringify(asked));
    if (!kept.has(mark) || shown[graph] === mark || !plotOf(graph)) {
      return;
    }
    const [figure, style, told] = draw(graph, mark, kept.get(mark), zoom);
    const nothing = window.dash_clientside.no_update;
    window.dash_clientside.set_props(graph, style === nothing ? { figure } : { figure, style });
    if (told !== nothing) {
      window.dash_clientside.set_props(store, { data: told });
    }
  }

  function draw(graph, mark, figure, zoom) {
    keep(mark, figure);
    shown[graph] = mark;
    return keepView(graph, copied(figure), zoom);
  }

  /* The server's answer, [figure, style, zoom, marks]: it sends no figure that is kept here. */
  function settle(graph, store, sent, mark, zoom, asked) {
    const nothing = window.dash_clientside.no_update;
    const { triggered } = window.dash_clientside.callback_context;
    const isNew = triggered.some(({ prop_id: name }) => name === store + ".data");
    const figure = isNew ? sent : kept.get(mark);
    if (!mark || !figure) {
      return [nothing, nothing, nothing, nothing];
    }
    marks.set(JSON.stringify(asked), mark);
    if (!isNew && shown[graph] === mark) {
      return [nothing, nothing, nothing, nothing];
    }
    return [...draw(graph, mark, figure, zoom), [...kept.keys()]];
  }

  Object.assign(window.etascope, { unpinned, keepView, readZoom, showZoom, recall, settle });
})();
