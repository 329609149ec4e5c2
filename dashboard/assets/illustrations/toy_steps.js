/* The toy's other two pictures: loss and theta against the step. */
(function () {
  "use strict";

  const { windowOf, visiblePath } = window.etascope.parts;
  const paths = window.etascope.toyPaths;
  const { STYLE_OF, NAME_OF, RAIL_SHARE, MARGIN, scatter, axis, scene, connection, exitArrows, rail } = paths;

  /* A logarithmic axis reaches this far from the first loss, both ways. */
  const LOG_REACH = 1e9;

  /* The axis of the explicit path's picture, so that a height means the same in both. */
  function linearScale(view, quantity) {
    const { seen } = scene(view, "esgd");
    const [low, high] = quantity === "loss" ? [seen.bottom, seen.top] : [seen.left, seen.right];
    return { low, high, place: (value) => value, value: (place) => place };
  }

  function logScale(view) {
    const losses = view.paths.flatMap((path) => path.loss).filter((loss) => loss > 0);
    const first = losses.length ? losses[0] : 1;
    const low = Math.log10(Math.max(Math.min(first, ...losses), first / LOG_REACH));
    const high = Math.log10(Math.min(Math.max(first, ...losses), first * LOG_REACH));
    const room = 0.06 * (high - low) || 0.5;
    // At the minimum the loss may be exactly 0; it is shown at the foot of the axis.
    const place = (loss) => (loss > 0 ? Math.max(Math.log10(loss), low) : low);
    return { low: low - room, high: high + room, place, value: (height) => 10 ** height };
  }

  function historyFigure(view, quantity, look, asked = false) {
    const log = asked && quantity === "loss";
    const scale = log ? logScale(view) : linearScale(view, quantity);
    const height = RAIL_SHARE * (scale.high - scale.low);
    const places = (path) =>
      path[quantity].map((value) => (value === null ? null : scale.place(value)));
    const below = quantity === "theta" ? height : 0; // a loss leaves upwards only
    const data = view.paths.flatMap((path) => history(view, path, quantity, scale, places(path), look));
    const layout = {
      template: look.template,
      margin: MARGIN,
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      hovermode: "x",
      // On a logarithmic axis plotly takes a shape's height as a value.
      shapes: [
        rail(scale.value(scale.high), scale.value(scale.high + height), look),
        ...(below ? [rail(scale.low - below, scale.low, look)] : []),
      ],
      xaxis: {
        ...axis("step", [-0.04 * view.steps, 1.04 * view.steps]),
        tickformat: "d",
        dtick: view.steps <= 12 ? 1 : null,
      },
      yaxis: {
        ...axis(quantity === "loss" ? "loss f(θ)" : "θ", [scale.low - below, scale.high + height]),
        type: log ? "log" : "linear",
        exponentformat: "power",
      },
    };
    return { data: [...data, railMarks(view, scale, height, places, look)], layout };
  }

  function history(view, path, quantity, scale, places, look) {
    const style = look.methods[STYLE_OF[path.method]];
    const seen = windowOf(0, view.steps, scale.low, scale.high);
    const visible = visiblePath(seen, places.map((_, step) => step), places);
    const up = ([x, y]) => [x, scale.value(y)];
    const raised = (lines) => lines.map(([step, from, to]) => [step, up(from), up(to)]);
    const shown = scatter({
      x: visible.dots.map(([step]) => step),
      y: visible.dots.map(([, at]) => scale.value(at[1])),
      customdata: visible.dots.map(([step]) => step),
      text: visible.dots.map(([step]) => String(Number(path[quantity][step].toPrecision(4)))),
      mode: "markers",
      marker: { symbol: style.marker, color: style.colour, size: 8 },
      cliponaxis: false,
      hovertemplate: `${NAME_OF[path.method]}: %{text}<extra></extra>`,
      name: NAME_OF[path.method],
      meta: { grows: true },
    });
    return [connection(raised(visible.lines), style, 2, "line"), exitArrows(raised(visible.exits), style), shown];
  }

  /* A mark for every step that is out of the picture: on the rail above, or below if it left there. */
  function railMarks(view, scale, height, places, look) {
    const out = (place) => place === null || place < scale.low || place > scale.high;
    const marks = view.paths.flatMap((path) =>
      places(path).flatMap((place, step) =>
        out(place) ? [[step, path.method, place !== null && place < scale.low]] : []
      )
    );
    const middle = (under) => (under ? scale.low - height / 2 : scale.high + height / 2);
    return scatter({
      x: marks.map(([step]) => step),
      y: marks.map(([, , under]) => scale.value(middle(under))),
      customdata: marks.map(([step]) => step),
      mode: "markers",
      marker: {
        symbol: marks.map(([, , under]) => (under ? "triangle-down" : "triangle-up")),
        size: 8,
        color: marks.map(([, method]) => look.ink(STYLE_OF[method])),
      },
      text: marks.map(([, method]) => NAME_OF[method]),
      hovertemplate: "%{text}: out of the picture<extra></extra>",
      showlegend: false,
      cliponaxis: false,
      name: "rail",
      meta: { grows: true },
    });
  }

  Object.assign(window.etascope.toyPaths, { historyFigure });
})();
