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

  const BOLD_LETTER = 7.8;
  /* Pixels of letters of which two lines have room above a panel, and how wide each is. */
  const SMALLER = [{ size: 11, letter: 6.8 }, { size: 9, letter: 5.6 }];

  function lines(words, most) {
    return words.reduce((found, word) => {
      const last = found[found.length - 1];
      const longer = last + " " + word;
      return longer.length <= most ? [...found.slice(0, -1), longer] : [...found, word];
    }, [words.shift()]);
  }

  /* A panel's name that would run into its neighbour's is written smaller, in several lines. */
  function wrapTitles(layout, width) {
    const room = width - layout.margin.l - layout.margin.r;
    const titles = (layout.annotations || []).filter(
      (one) => /^<b>.*<\/b>$/.test(one.text) && one.xanchor === "left" && one.yanchor === "bottom"
    );
    titles.forEach((one) => {
      const next = titles.map((other) => other.x).filter((x) => x > one.x + 0.01);
      const space = (Math.min(1, ...next) - one.x) * room;
      const name = one.text.slice(3, -4);
      if (BOLD_LETTER * name.length > space) {
        const tried = SMALLER.map(({ size, letter }) => (
          { size, written: lines(name.split(" "), Math.floor(space / letter)) }
        ));
        const { size, written } = tried.find((each) => each.written.length <= 2) || tried[1];
        Object.assign(one, { text: "<b>" + written.join("<br>") + "</b>", align: "left" });
        one.font = { ...one.font, size };
      }
    });
  }

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

  window.etascope = Object.assign(window.etascope || {}, { wrapTitles });

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
