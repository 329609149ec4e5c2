/* A new figure in place of an old one, with the zoom and the hidden curves of whoever looks. */
(function () {
  "use strict";

  const AXES = ["xaxis", "yaxis"];

  /* What each graph was last given, by id: its revision and the ends of its axes. */
  const given = {};

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
  const sameView = (before, now) =>
    before && before.revision === now.revision && (!before.plot || before.plot === now.plot);

  function keepView(graph, figure) {
    const plot = document.querySelector("#" + graph + " .js-plotly-plot");
    const before = given[graph];
    const style = { height: figure.layout.height + "px" };
    given[graph] = { plot, revision: figure.layout.uirevision, ends: endsOf(figure.layout) };
    if (!plot || !plot.layout || !sameView(before, given[graph])) {
      return [figure, style];
    }
    const layout = zoomed(figure.layout, plot, before);
    return [Object.assign({}, figure, { layout, data: hidden(figure.data, plot) }), style];
  }

  Object.assign(window.etascope, { keepView });
})();
