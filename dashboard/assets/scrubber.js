/* One learning rate of many: a line one drags, a slider, and the curves that light up with it. */
(function () {
  "use strict";

  const plotOf = (graph) => document.querySelector("#" + graph + " .js-plotly-plot");
  const scrubOf = (plot) => (plot && plot.layout && plot.layout.meta && plot.layout.meta.scrub) || null;

  /* What each graph shows, by id: the place of its rate, and where that is remembered. */
  const chosen = {};

  function nearest(rates, wanted) {
    const away = rates.map((rate) => Math.abs(Math.log(rate / wanted)));
    return away.indexOf(Math.min(...away));
  }

  const litOf = (data) => data.map((trace, index) => ({ trace, index })).filter(({ trace }) => trace.meta && trace.meta.lit);

  function curveOf(data, rate, panel) {
    return data.find((one) => one.meta && one.meta.lr === rate && one.xaxis === panel) || { x: [], y: [] };
  }

  const shapesWith = (layout, rate) => [
    ...(layout.shapes || []).filter((shape) => shape.name !== "scrubber"), lineAt(rate),
  ];

  /* The chosen rate's curves, drawn once more and thicker: all others stay as they are. */
  function light(plot, place) {
    const { rates, colours } = scrubOf(plot);
    if (!colours) {
      return;
    }
    const lit = litOf(plot.data);
    const curves = lit.map(({ trace }) => curveOf(plot.data, rates[place], trace.xaxis));
    window.Plotly.update(
      plot,
      {
        x: curves.map((curve) => curve.x),
        y: curves.map((curve) => curve.y),
        meta: lit.map(() => ({ lit: true, place })),
        "line.color": colours[place],
        "marker.color": colours[place],
      },
      { shapes: shapesWith(plot.layout, rates[place]) },
      lit.map(({ index }) => index)
    );
  }

  /* A figure with a rate's curves lit before it is drawn: to draw it twice would take twice as long. */
  function litFigure(figure, place) {
    const { rates, colours } = figure.layout.meta.scrub;
    const color = colours[place];
    const data = figure.data.map((trace) => {
      if (!(trace.meta && trace.meta.lit)) {
        return trace;
      }
      const { x, y } = curveOf(figure.data, rates[place], trace.xaxis);
      const line = Object.assign({}, trace.line, { color });
      const marker = Object.assign({}, trace.marker, { color });
      return Object.assign({}, trace, { x, y, line, marker, meta: { lit: true, place } });
    });
    const layout = Object.assign({}, figure.layout, { shapes: shapesWith(figure.layout, rates[place]) });
    return Object.assign({}, figure, { data, layout });
  }

  /* The rate asked for by the address or a drag, else by the figure, else one in the middle. */
  function placeOf(found, rate) {
    const at = Number(rate) > 0 ? Number(rate) : found.chosen || found.rates[Math.floor(found.rates.length / 2)];
    return nearest(found.rates, at);
  }

  function lineAt(rate) {
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim() || "#3B5BDB";
    return {
      type: "line", name: "scrubber", xref: "x", yref: "y domain", x0: rate, x1: rate, y0: 0, y1: 1,
      line: { color: ink, width: 2 },
    };
  }

  function tell(graph, place, quiet) {
    const { scrubber } = chosen[graph];
    const plot = plotOf(graph);
    const found = scrubOf(plot);
    const box = document.getElementById(scrubber);
    if (!found || !box) {
      return;
    }
    chosen[graph].place = place;
    const slider = box.querySelector("input");
    slider.value = place;
    slider.setAttribute("aria-valuetext", found.words[place]);
    slider.setAttribute("aria-label", "Learning rate");
    box.querySelector(".scrub-words").textContent = found.words[place].replace("learning rate ", "");
    box.querySelector(".scrub-link").href = "/updates?lr=" + found.rates[place];
    if (!quiet) {
      light(plot, place);
    }
  }

  /* Written when a drag ends: the address follows, and pictures that the server draws. */
  function remember(graph) {
    const found = scrubOf(plotOf(graph));
    const { place, store } = chosen[graph];
    if (found && place !== undefined) {
      chosen[graph].told = String(found.rates[place]);
      window.dash_clientside.set_props(store, { data: chosen[graph].told });
    }
  }

  /* Dash hands a figure over before plotly has drawn it, on a busy machine long before. */
  const PAUSE = 50;

  function whenDrawn(graph, figure, call, then) {
    const plot = plotOf(graph);
    const layout = (plot && plot.layout) || {};
    const same = layout.uirevision === figure.layout.uirevision && plot._fullLayout;
    if (chosen[graph].call !== call) {
      return; // something newer is to be shown
    }
    if (same && plot.data.length === figure.data.length && scrubOf(plot)) {
      then(plot, scrubOf(plot));
    } else {
      window.setTimeout(() => whenDrawn(graph, figure, call, then), PAUSE);
    }
  }

  /* A new figure, or another rate in the address. */
  function scrub(graph) {
    const { figure } = chosen[graph];
    const box = boxOf(graph);
    if (!box) {
      return;
    }
    const call = (chosen[graph].call || 0) + 1;
    const { store, rail } = box.dataset;
    const rate = rateIn(box);
    Object.assign(chosen[graph], { scrubber: box.id, store, rail, call });
    const wanted = figure && figure.layout && figure.layout.meta && figure.layout.meta.scrub;
    box.hidden = !wanted;
    if (!wanted) {
      return;
    }
    whenDrawn(graph, figure, call, (plot, found) => {
      /* Lighting up changes the figure, of which Dash tells again. */
      const place = placeOf(found, rate);
      const lit = litOf(plot.data).every(({ trace }) => trace.meta.place === place);
      const key = [plot.layout.uirevision, found.rates.length, plot.data.length, rate].join(" ");
      if (chosen[graph].key === key && lit) {
        return;
      }
      chosen[graph].key = key;
      box.querySelector("input").max = found.rates.length - 1;
      tell(graph, place, lit);
    });
  }

  const boxOf = (graph) => document.querySelector('.scrubber[data-graph="' + graph + '"]');
  /* Asked, not told: Dash tells of a store's first value nobody who has nothing to answer. */
  const rateIn = (box) => window.dash_component_api.getLayout(box.dataset.store).props.data;

  /* Returns a new figure as it is to be drawn. */
  function scrubFigure(graph, figure) {
    const box = boxOf(graph);
    const found = figure.layout.meta && figure.layout.meta.scrub;
    const shown = box && found && found.colours ? litFigure(figure, placeOf(found, rateIn(box))) : figure;
    chosen[graph] = Object.assign(chosen[graph] || {}, { figure: shown });
    scrub(graph);
    return shown;
  }

  function scrubTo(graph) {
    chosen[graph] = chosen[graph] || {};
    scrub(graph);
  }

  const graphOfSlider = (slider) => {
    const box = slider.closest && slider.closest(".scrubber");
    return box && box.dataset.graph;
  };

  document.addEventListener("input", (event) => {
    const graph = graphOfSlider(event.target);
    if (graph && chosen[graph]) {
      tell(graph, Number(event.target.value), false);
    }
  }, true);
  document.addEventListener("change", (event) => {
    const graph = graphOfSlider(event.target);
    if (graph && chosen[graph]) {
      remember(graph);
    }
  }, true);

  /* --- The line in the picture ------------------------------------------------------------- */

  let dragged = null;

  function placeAt(plot, event) {
    const axis = plot._fullLayout.xaxis;
    const box = plot.getBoundingClientRect();
    const at = event.clientX - box.left - axis._offset;
    return nearest(scrubOf(plot).rates, axis.p2d(at));
  }

  function overview(plot, event) {
    const [across, up] = [plot._fullLayout.xaxis, plot._fullLayout.yaxis];
    const box = plot.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - across._offset, event.clientY - box.top - up._offset];
    return x >= -8 && x <= across._length + 8 && y >= 0 && y <= up._length;
  }

  document.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest && event.target.closest(".dash-graph .js-plotly-plot");
    const graph = plot && plot.closest(".dash-graph").id;
    const found = graph && chosen[graph] && scrubOf(plot);
    if (!found || !found.colours || !overview(plot, event)) {
      return;
    }
    dragged = { graph, plot };
    tell(graph, placeAt(plot, event), false);
    event.preventDefault();
    event.stopPropagation();
  }, true);

  /* At most once a frame: a pointer tells of itself more often than a picture can follow. */
  let waiting = false;
  document.addEventListener("pointermove", (event) => {
    if (!dragged || waiting) {
      return;
    }
    waiting = true;
    window.requestAnimationFrame(() => {
      waiting = false;
      if (dragged) {
        const place = placeAt(dragged.plot, event);
        if (place !== chosen[dragged.graph].place) {
          tell(dragged.graph, place, false);
        }
      }
    });
  }, true);
  ["pointerup", "pointercancel"].forEach((name) =>
    document.addEventListener(name, () => {
      if (dragged) {
        remember(dragged.graph);
        dragged = null;
      }
    }, true)
  );

  /* --- A folded rail opens on click ---------------------------------------------------------- */

  function openRail(graph) {
    if (chosen[graph] && chosen[graph].rail) {
      window.dash_clientside.set_props(chosen[graph].rail, { checked: true });
    }
  }

  Object.assign(window.etascope, { scrubFigure, scrubTo, openRail });
})();
