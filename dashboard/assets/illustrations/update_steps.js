/* One node's explicit and implicit step, drawn on its activation, as in the paper's relu figure. */
(function () {
  "use strict";

  const { number, signed, faint, windowAround } = window.etascope.parts;

  /* EB's arrow runs above the activation and IB's below it, by this share of the picture's height. */
  const LANE_SHARE = { eb: 0.07, ib: -0.07 };
  /* And its words further out. */
  const WORDS_SHARE = 0.14;

  const scatter = (properties) => ({ type: "scatter", showlegend: false, ...properties });

  /* Both methods' steps for one sign of b; below, step and loss against s. */
  function updateFigure(view, sign, look) {
    const ofSign = (list) =>
      list.filter(({ b }) => b * sign > 0).sort((one, other) => (one.method < other.method ? -1 : 1));
    const steps = ofSign(view.steps);
    const sweeps = ofSign(view.sweeps);
    const seen = windowAround(view.function.x, view.function.y, 0.3);
    const { sweepTraces } = window.etascope.updateSweeps;
    const data = [
      activation(view, look),
      ...steps.flatMap((step) => stepTraces(view, step, seen, look)),
      startDot(steps[0], look),
      ...sweepTraces(view, steps, sweeps, "step", look),
      ...sweepTraces(view, steps, sweeps, "loss", look),
    ];
    return { data, layout: layoutOf(view, steps, sweeps, seen, look) };
  }

  const activation = (view, look) =>
    scatter({
      ...view.function,
      mode: "lines",
      line: { color: look.palette.axis, width: 7, simplify: false },
      hovertemplate: `${view.activation}(%{x:.3~g}) = %{y:.3~g}<extra></extra>`,
      name: "activation",
    });

  const startDot = (here, look) =>
    scatter({
      x: [here.s],
      y: [here.origin],
      mode: "markers",
      marker: { size: 15, color: look.palette.text, line: { color: look.palette.paper, width: 2 } },
      hovertemplate: "before the step: s = %{x:.3~g}<extra></extra>",
      name: "start",
    });

  /* A method's arrow along the activation, the dot it ends in, and what it did. */
  function stepTraces(view, step, seen, look) {
    const end = endOf(view, step, seen);
    return [...arrow(view, step, end, seen, look), landing(step, end, look), words(view, step, end, seen, look)];
  }

  function arrow(view, step, end, seen, look) {
    const style = look.methods[step.method];
    const lane = LANE_SHARE[step.method] * seen.height;
    const way = wayOf(view, step, end).map(([x, y]) => [x, y + lane]);
    const places = (points) => ({ x: points.map(([x]) => x), y: points.map(([, y]) => y) });
    const shaft = scatter({
      ...places(way),
      mode: "lines",
      line: { color: style.colour, width: 2.5, dash: style.dash },
      hoverinfo: "skip",
      name: `${step.method} arrow`,
    });
    const head = scatter({
      ...places(way.slice(-2)),
      mode: "markers",
      marker: {
        symbol: "arrow",
        angleref: "previous",
        size: [0, 16],
        color: style.colour,
        opacity: 1,
        line: { width: 0 },
      },
      hoverinfo: "skip",
      name: `${step.method} arrow head`,
    });
    return [shaft, head];
  }

  function landing(step, end, look) {
    const style = look.methods[step.method];
    return scatter({
      x: [end[0]],
      y: [end[1]],
      mode: "markers",
      marker: {
        symbol: style.marker,
        size: 13,
        color: style.colour,
        line: { color: look.palette.paper, width: 1.5 },
      },
      cliponaxis: false,
      hovertemplate:
        `${style.short} lands at s′ = ${number(step.landing)}` +
        `<br>loss change ${signed(step.change)}<extra></extra>`,
      name: `${step.method} landing`,
    });
  }

  function words(view, step, end, seen, look) {
    const side = wordsSide(step.method, end[0], seen);
    return scatter({
      x: [end[0]],
      y: [wordsHeight(view, step.method, end, side, seen)],
      mode: "text",
      text: [landingText(step, seen, look)],
      textposition: `middle ${side}`,
      textfont: { color: look.ink(step.method), size: 13 },
      cliponaxis: false,
      hoverinfo: "skip",
      name: `${step.method} words`,
    });
  }

  const wordsRoom = (seen) => window.etascope.updateSweeps.WORDS_WIDTH * seen.width;

  /* Activations rise to the right: EB's words go above and left, IB's below and right. */
  function wordsSide(method, x, seen) {
    if (method === "eb") {
      return x - wordsRoom(seen) > seen.left ? "left" : "right";
    }
    return x + wordsRoom(seen) < seen.right ? "right" : "left";
  }

  /* Clear of the activation for as far as the words reach. */
  function wordsHeight(view, method, end, side, seen) {
    const room = wordsRoom(seen);
    const [low, high] = side === "left" ? [end[0] - room, end[0]] : [end[0], end[0] + room];
    const { x, y } = view.function;
    const beside = y.filter((height, i) => height !== null && low <= x[i] && x[i] <= high);
    const withTheArrow = side === (method === "eb" ? "right" : "left");
    const distance = WORDS_SHARE * seen.height * (withTheArrow ? 1.5 : 1);
    return method === "eb"
      ? Math.min(Math.max(end[1], ...beside) + distance, seen.top - distance / 3)
      : Math.max(Math.min(end[1], ...beside) - distance, seen.bottom + distance / 3);
  }

  /* What a step did to the loss, and where it went if it left the picture. */
  function landingText(step, seen, look) {
    const { short } = look.methods[step.method];
    if (step.landing === null) {
      return `${short} goes beyond all numbers`;
    }
    if (step.landing === step.s) {
      return `${short} stays`;
    }
    const text = `${short}: loss ${signed(step.change)}`;
    const inside = seen.left <= step.landing && step.landing <= seen.right;
    return inside ? text : `${text}<br>out, at s′ = ${number(step.landing)}`;
  }

  /* Where the dot goes: on the activation, at the picture's edge if the step leaves it. */
  function endOf(view, step, seen) {
    const { y } = view.function;
    const gone = step.landing === null || step.value === null;
    if (gone ? step.b > 0 : step.landing < seen.left) {
      return [seen.left, y[0] || 0];
    }
    if (gone || step.landing > seen.right) {
      return [seen.right, y[y.length - 1] || 0];
    }
    return [step.landing, step.value];
  }

  /* The activation from s to the end of the step; nothing if it does not move. */
  function wayOf(view, step, end) {
    const start = [step.s, step.origin || 0];
    const [low, high] = [Math.min(start[0], end[0]), Math.max(start[0], end[0])];
    const { x, y } = view.function;
    const between = x.flatMap((at, i) => (y[i] !== null && low < at && at < high ? [[at, y[i]]] : []));
    return low < high ? [start, ...(start[0] < end[0] ? between : between.reverse()), end] : [];
  }

  /* Three pictures on one axis of s. */
  function layoutOf(view, steps, sweeps, seen, look) {
    const { shownRange, jumpWords } = window.etascope.updateSweeps;
    const way = steps[0].b > 0 ? "left" : "right";
    const across = { range: [seen.left, seen.right], zeroline: false, automargin: false };
    const above = { ...across, matches: "x3", showticklabels: false };
    const up = (title, range, domain) => ({
      title: { text: title },
      range,
      domain,
      zeroline: false,
      automargin: false,
    });
    return {
      template: look.template,
      margin: { l: 66, r: 12, t: 36, b: 44 },
      legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom", traceorder: "reversed" },
      hovermode: "closest",
      shapes: guides(view, steps, look),
      annotations: jumpWords(view, sweeps, steps[0].s, look),
      xaxis: { ...above, anchor: "y" },
      xaxis2: { ...above, anchor: "y2" },
      xaxis3: { ...across, anchor: "y3", title: { text: "s = θᵀz before the step" } },
      yaxis: up(`${view.activation}(s)`, [seen.bottom, seen.top], [0.54, 1.0]),
      yaxis2: up(`step to the ${way}`, shownRange(sweeps, "step"), [0.27, 0.48]),
      yaxis3: up("loss b·σ(s′)", shownRange(sweeps, "loss"), [0.0, 0.21]),
    };
  }

  /* A line through all three pictures at the present s, and one where IB's rule switches. */
  function guides(view, steps, look) {
    const lines = [[steps[0].s, look.palette.text, 1, "solid"]];
    if (view.jump !== null && steps[0].b < 0) {
      lines.push([view.jump, look.methods.ib.colour, 1.2, "dot"]);
    }
    return lines.map(([s, colour, width, dash]) => ({
      type: "line",
      xref: "x3",
      yref: "paper",
      x0: s,
      x1: s,
      y0: 0,
      y1: 1,
      line: { color: faint(colour, 0.6), width, dash },
      layer: "below",
    }));
  }

  Object.assign(window.etascope, { updateFigure });
})();
