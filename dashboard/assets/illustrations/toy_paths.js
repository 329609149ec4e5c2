/* The toy's first two pictures: the loss with a path on it, as in the paper's first figure.

   Traces that grow with the steps carry the step of each point as `customdata`, by which a path is
   played (toy_page.js). */
(function () {
  "use strict";

  const { number, windowAround, visiblePath } = window.etascope.parts;

  /* The toy's methods look like their namesakes on every other page. */
  const STYLE_OF = { esgd: "eb", isgd: "isgd" };
  const NAME_OF = { esgd: "ESGD", isgd: "ISGD" };

  /* A path that leaves its picture is shown in one that reaches this many times as far. */
  const FARTHER = 4;
  const RAIL_SHARE = 0.1;
  const LABEL_ROOM = 0.06;
  const MARGIN = { l: 62, r: 12, t: 34, b: 44 };

  const scatter = (properties) => ({ type: "scatter", ...properties });
  const pathOf = (view, method) => view.paths.find((path) => path.method === method);
  const axis = (title, range) => ({ title: { text: title }, range, zeroline: false, automargin: false });

  /* Where a path is drawn: around the start, the same at every rate, or farther if it leaves that. */
  function scene(view, method) {
    const path = pathOf(view, method);
    const on = (curve) => {
      const seen = windowAround(curve.x, curve.y);
      return { path, curve, seen, visible: visiblePath(seen, path.theta, path.loss) };
    };
    const near = on(view.function);
    if (near.visible.leftAt === null) {
      return { ...near, farther: false };
    }
    const reach = FARTHER * near.seen.right;
    return { ...on(window.etascope.lossCurve(view.loss, view.curvature, reach)), farther: true };
  }

  function pathFigure(view, method, look) {
    const { curve, seen, visible, path, farther } = scene(view, method);
    const style = look.methods[STYLE_OF[method]];
    const top = seen.top + RAIL_SHARE * seen.height;
    const data = [
      scatter({
        ...curve,
        mode: "lines",
        line: { color: look.palette.axis, width: 5, simplify: false },
        hoverinfo: "skip",
        name: "f",
      }),
      connection(visible.lines, style, 1.8, "path"),
      exitArrows(visible.exits, style),
      exitWords(visible, path, seen, look),
      dots(visible, path, style, seen, view.minimum, look),
      head(visible, look.ink(STYLE_OF[method])),
      railWords(seen, path, visible, look),
    ];
    const layout = {
      template: look.template,
      showlegend: false,
      margin: { ...MARGIN, t: 12 },
      hovermode: "closest",
      shapes: [rail(seen.top, top, look), minimumLine(view, seen, look)],
      xaxis: axis(farther ? `θ (axes ${FARTHER} times as wide)` : "θ", [seen.left, seen.right]),
      yaxis: axis("loss f(θ)", [seen.bottom, top]),
    };
    return { data, layout };
  }

  /* Separate lines as one trace wants them: start, end, nothing. */
  function withGaps(lines) {
    return {
      x: lines.flatMap(([, from, to]) => [from[0], to[0], null]),
      y: lines.flatMap(([, from, to]) => [from[1], to[1], null]),
      customdata: lines.flatMap(([step]) => [step, step, step]),
    };
  }

  const connection = (lines, style, width, name) =>
    scatter({
      ...withGaps(lines),
      mode: "lines",
      line: { color: style.colour, width, dash: style.dash },
      hoverinfo: "skip",
      showlegend: false,
      name,
      meta: { grows: true },
    });

  /* Arrow heads where a path leaves: markers turned away from the point before them. */
  const exitArrows = (exits, style) =>
    scatter({
      ...withGaps(exits),
      mode: "markers",
      marker: {
        symbol: "arrow",
        angleref: "previous",
        size: exits.flatMap(() => [0, 15, 0]),
        color: style.colour,
        opacity: 1,
        line: { width: 0 },
      },
      hoverinfo: "skip",
      showlegend: false,
      cliponaxis: false,
      name: "exit",
      meta: { grows: true },
    });

  const whereTo = (theta) => (theta === null ? "θ beyond all numbers" : "θ = " + number(theta));

  /* The first step that is not in the picture, beside the arrow that leads to it. */
  function exitWords(visible, path, seen, look) {
    const [step, from, at] = visible.exits[0] || [];
    const gone = visible.exits.length > 0;
    // On the side the arrow does not come from, if there is room.
    const room = 0.35 * seen.width;
    const left = gone && (from[0] > at[0] ? at[0] - room > seen.left : at[0] + room > seen.right);
    return scatter({
      x: gone ? [at[0]] : [],
      y: gone ? [at[1]] : [],
      customdata: gone ? [step] : [],
      text: gone ? [`  ${step}: ${whereTo(path.theta[step])}  `] : [],
      textposition: left ? "bottom left" : "bottom right",
      mode: "text",
      textfont: { color: look.ink(STYLE_OF[path.method]), size: 12 },
      hoverinfo: "skip",
      name: "exit words",
      meta: { grows: true },
    });
  }

  /* Each dot's number, or nothing where an earlier dot is in the way. */
  function stepNumbers(shown, seen) {
    const near = ([ax, ay], [bx, by]) =>
      Math.abs(ax - bx) < LABEL_ROOM * seen.width && Math.abs(ay - by) < LABEL_ROOM * seen.height;
    return shown.map(([step, at], index) =>
      shown.slice(0, index).some(([, other]) => near(at, other)) ? "" : ` ${step} `
    );
  }

  const dots = (visible, path, style, seen, minimum, look) =>
    scatter({
      x: visible.dots.map(([, at]) => at[0]),
      y: visible.dots.map(([, at]) => at[1]),
      customdata: visible.dots.map(([step]) => step),
      text: stepNumbers(visible.dots, seen),
      mode: "markers+text",
      // Outside of the bowl, where no connection passes.
      textposition: visible.dots.map(([, at]) => (at[0] >= minimum ? "middle right" : "middle left")),
      textfont: { color: look.palette.text, size: 12 },
      marker: {
        symbol: style.marker,
        color: style.colour,
        size: 9,
        line: { color: look.palette.paper, width: 1 },
      },
      cliponaxis: false,
      hovertemplate: `${NAME_OF[path.method]}, step %{customdata}<br>θ = %{x:.4~g}<br>loss = %{y:.4~g}<extra></extra>`,
      name: "dots",
      meta: { grows: true },
    });

  /* A ring around the step the picture is at. */
  const head = (visible, ink) =>
    scatter({
      x: visible.dots.slice(-1).map(([, at]) => at[0]),
      y: visible.dots.slice(-1).map(([, at]) => at[1]),
      mode: "markers",
      marker: { symbol: "circle-open", size: 18, color: ink, line: { width: 2 } },
      hoverinfo: "skip",
      cliponaxis: false,
      name: "head",
      meta: { head: true },
    });

  /* The strip on top where what left the picture is named. */
  const rail = (low, high, look) => ({
    type: "rect",
    xref: "paper",
    yref: "y",
    x0: 0,
    x1: 1,
    y0: low,
    y1: high,
    fillcolor: look.palette.rail,
    line: { width: 0 },
    layer: "below",
  });

  const minimumLine = (view, seen, look) => ({
    type: "line",
    x0: view.minimum,
    x1: view.minimum,
    y0: seen.bottom,
    y1: seen.top,
    line: { color: look.palette.reference, width: 1, dash: "dot" },
    layer: "below",
  });

  /* When a path left the picture and where it is in the end. */
  function railSentence(path, visible) {
    const last = path.theta.length - 1;
    if (visible.leftAt === null) {
      return "";
    }
    if (visible.returns) {
      return `▲ out at step ${visible.leftAt}, back later`;
    }
    const first = `▲ out at step ${visible.leftAt}`;
    return visible.leftAt === last ? first : `${first}; at step ${last} ${whereTo(path.theta[last])}`;
  }

  function railWords(seen, path, visible, look) {
    const text = railSentence(path, visible);
    return scatter({
      x: text ? [seen.left + seen.width / 2] : [],
      y: text ? [seen.top + (RAIL_SHARE * seen.height) / 2] : [],
      customdata: text ? [visible.leftAt] : [],
      text: text ? [text] : [],
      mode: "text",
      textfont: { color: look.ink(STYLE_OF[path.method]), size: 12 },
      hoverinfo: "skip",
      cliponaxis: false,
      name: "left",
      meta: { grows: true },
    });
  }

  window.etascope.toyPaths = {
    STYLE_OF, NAME_OF, RAIL_SHARE, MARGIN, scatter, axis, scene, connection, exitArrows, rail, pathFigure,
  };
})();
