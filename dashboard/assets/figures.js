/* Figures for hands and ears: clicks on points, and a sentence that says what is drawn. */
(function () {
  "use strict";

  /* --- A click on a point opens the trials behind it, also while the picture is redrawn ------ */

  /* So far from a marker a finger or a mouse still means it, in pixels. */
  const REACH = 14;

  const axisOf = (plot, id) => plot._fullLayout[id[0] + "axis" + id.slice(1)];

  /* Every point that opens something: where it is in the plot, how large, and what it opens. */
  function targets(plot) {
    return plot._fullData
      .filter((trace) => trace.visible === true && Array.isArray(trace.customdata))
      .flatMap((trace) => {
        const [across, up] = [axisOf(plot, trace.xaxis), axisOf(plot, trace.yaxis)];
        return trace.customdata.map((opens, index) => ({
          opens,
          mean: trace.meta === "mean" || trace.meta === "finite mean",
          radius: (Array.isArray(trace.marker.size) ? trace.marker.size[index] : trace.marker.size) / 2,
          x: across._offset + across.d2p(trace.x[index]),
          y: up._offset + up.d2p(trace.y[index]),
        }));
      })
      .filter((target) => typeof target.opens === "string" && target.opens);
  }

  /* A mean under the pointer comes before the seeds around it: it opens them all. */
  function opened(plot, x, y) {
    const near = targets(plot)
      .map((target) => ({ ...target, away: Math.hypot(target.x - x, target.y - y) }))
      .filter((target) => target.away <= REACH)
      .sort((one, other) => one.away - other.away);
    const mean = near.find((target) => target.mean && target.away <= target.radius + 2);
    return (mean || near[0] || { opens: "" }).opens;
  }

  /*
   * Plotly tells of a click only if it has just drawn a label for the place. It draws labels at most
   * every 50 ms, and a redraw keeps the browser busy for longer: whoever moved and pressed meanwhile
   * pressed in vain. The click itself always comes, on the layer that plotly lays over its panels.
   */
  function openTrials(graph, store) {
    document.addEventListener("click", (event) => {
      const plot = event.target.closest && event.target.closest("#" + graph + " .js-plotly-plot");
      if (!plot || !plot._fullData || !event.target.closest(".draglayer")) {
        return;
      }
      const box = plot.getBoundingClientRect();
      const trials = opened(plot, event.clientX - box.left, event.clientY - box.top);
      if (trials === "rail") {
        window.etascope.openRail(graph);
      } else if (trials) {
        window.dash_clientside.set_props(store, { data: trials });
      }
    }, true);
  }

  openTrials("study-graph", "study-selected");

  /* --- What a figure shows, for who does not see it ------------------------------------------ */

  function label(plot) {
    const words = plot.layout && plot.layout.meta && plot.layout.meta.label;
    const [picture, ...layers] = plot.querySelectorAll(".main-svg");
    if (!words || !picture || picture.getAttribute("aria-label") === words) {
      return;
    }
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", words);
    layers.forEach((layer) => layer.setAttribute("aria-hidden", "true"));
  }

  let waiting = false;
  new MutationObserver(() => {
    if (!waiting) {
      waiting = true;
      window.requestAnimationFrame(() => {
        waiting = false;
        document.querySelectorAll(".js-plotly-plot").forEach(label);
      });
    }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
