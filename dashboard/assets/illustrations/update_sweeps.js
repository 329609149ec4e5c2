/* Step and loss against s, and the step against the rate: what one node's update would be. */
(function () {
  "use strict";

  const { number } = window.etascope.parts;

  /* In which of the figure's pictures a quantity is drawn. */
  const AXES = { step: { xaxis: "x2", yaxis: "y2" }, loss: { xaxis: "x3", yaxis: "y3" } };
  /* Between two neighbouring samples a line may climb this share of its axis; beyond, it jumps. */
  const JUMP_SHARE = 0.08;
  /* Next to a jump the line climbs less than this share of it. */
  const ALONE_SHARE = 0.3;
  /* Differences below this are rounding. */
  const NOISE = 1e-12;
  /* Words closer than this share of the picture's width lean away from each other. */
  const WORDS_WIDTH = 0.28;

  const known = (values) => values.filter((value) => value !== null);

  /* A sweep's losses, or its steps counted in the direction that lowers the loss. */
  const valuesOf = (sweep, quantity) =>
    quantity === "loss" ? sweep.loss : sweep.step.map((step) => (step === null ? null : step * Math.sign(sweep.b)));

  const lengthOf = (step) => (step.landing === null ? null : (step.s - step.landing) * Math.sign(step.b));

  /* Where a sampled line jumps: the samples far above or below the one before them. A line that is
     merely steep climbs in several samples; a jump is alone. */
  function jumps(ys) {
    const climbs = ys.slice(1).map((y, i) => (y === null || ys[i] === null ? 0 : Math.abs(y - ys[i])));
    const finite = known(ys);
    const most = finite.length ? JUMP_SHARE * (Math.max(...finite) - Math.min(...finite)) : 0;
    return climbs.flatMap((climb, i) => {
      const beside = Math.max(climbs[i - 1] || 0, climbs[i + 1] || 0);
      return climb > most && most > NOISE && beside < ALONE_SHARE * climb ? [i + 1] : [];
    });
  }

  /* A line with a hole wherever it jumps, so that no wall is drawn there. */
  function withBreaks(xs, ys) {
    const holes = new Set(jumps(ys));
    const broken = (values) => values.flatMap((value, i) => (holes.has(i) ? [null, value] : [value]));
    return { x: broken(xs), y: broken(ys) };
  }

  function line(view, sweep, quantity, look) {
    const style = look.methods[sweep.method];
    return {
      type: "scatter",
      ...withBreaks(view.s, valuesOf(sweep, quantity)),
      mode: "lines",
      line: { color: style.colour, width: 2.5, dash: style.dash },
      legendgroup: sweep.method,
      showlegend: quantity === "step",
      hovertemplate: `${style.short} from s = %{x:.3~g}: %{y:.3~g}<extra></extra>`,
      name: style.short,
      ...AXES[quantity],
    };
  }

  function marker(step, quantity, look) {
    const style = look.methods[step.method];
    const here = quantity === "loss" ? step.loss : lengthOf(step);
    return {
      type: "scatter",
      x: [step.s],
      y: [here],
      mode: "markers",
      marker: { symbol: style.marker, size: step.method === "ib" ? 9 : 14, color: style.colour },
      legendgroup: step.method,
      showlegend: false,
      hovertemplate: `${style.short} here: ${number(here)}<extra></extra>`,
      name: `${step.method} ${quantity} here`,
      ...AXES[quantity],
    };
  }

  /* Every method's line, and its marker at the present s. Where both agree the explicit line's dots
     stay visible on the implicit one, and the smaller implicit marker on the explicit one. */
  function sweepTraces(view, steps, sweeps, quantity, look) {
    const lines = [...sweeps].reverse().map((sweep) => line(view, sweep, quantity, look));
    return [...lines, ...steps.map((step) => marker(step, quantity, look))];
  }

  /* What the axis shows: all values; rounding noise around one value is not stretched. */
  function shownRange(sweeps, quantity) {
    const values = known(sweeps.flatMap((sweep) => valuesOf(sweep, quantity)));
    const low = values.length ? Math.min(...values) : 0;
    const high = values.length ? Math.max(...values) : 0;
    const room = high - low > NOISE ? 0.12 * (high - low) : 1;
    return [low - room, high + room];
  }

  /* Name whose step jumps, above the picture of the steps; words near the line at the present s lean
     away from it. */
  function jumpWords(view, sweeps, here, look) {
    const found = sweeps
      .flatMap((sweep) => jumps(sweep.step).map((index) => [view.s[index], sweep.method]))
      .sort((one, other) => one[0] - other[0]);
    const room = WORDS_WIDTH * (view.s[view.s.length - 1] - view.s[0]);
    const close = (i) => i > 0 && i < found.length && found[i][0] - found[i - 1][0] < room;
    const aside = (s) => (Math.abs(here - s) > room ? "center" : here > s ? "right" : "left");
    return found.map(([s, method], i) => ({
      xref: "x2",
      yref: "y2 domain",
      x: s,
      y: 1,
      xanchor: close(i) ? "left" : close(i + 1) ? "right" : aside(s),
      yanchor: "bottom",
      text: `${look.methods[method].short} jumps`,
      font: { size: 12, color: look.ink(method) },
      showarrow: false,
    }));
  }

  /* --- The limit of a step ------------------------------------------------------------------------ */

  /* Full lines for b > 0, thin ones for b < 0; a log axis has no place for no step at all. */
  function limitLine(view, sweep, look) {
    const style = look.methods[sweep.method];
    const way = sweep.b > 0 ? "b > 0" : "b < 0";
    return {
      type: "scatter",
      x: view.rates,
      y: sweep.length.map((length) => (length > 0 ? length : null)),
      mode: "lines",
      line: { color: style.colour, width: sweep.b > 0 ? 3 : 1.5, dash: style.dash },
      hovertemplate: `${style.short}, ${way}, rate %{x:.3~g}: %{y:.3~g}<extra></extra>`,
      name: `${style.short}, ${way}`,
    };
  }

  /* The range of a log axis over these values, `room` decades wider at both ends; no value: one step of 1. */
  function decadesOf(values, room = 0) {
    const decades = values.length ? values.map(Math.log10) : [0];
    const [low, high] = [Math.min(...decades), Math.max(...decades)];
    const around = high - low > NOISE ? room : 0.5;
    return [low - around, high + around];
  }

  /* How long both methods' steps get as the rate grows, the present rate marked. */
  function limitFigure(view, look) {
    // The explicit lines lie above the implicit ones: their dots stay visible where both agree.
    const lines = [...view.by_rate].reverse().map((sweep) => limitLine(view, sweep, look));
    const log = { type: "log", zeroline: false, automargin: false };
    const lengths = lines.flatMap(({ y }) => known(y));
    return {
      data: lines,
      layout: {
        template: look.template,
        margin: { l: 66, r: 32, t: 58, b: 50 },
        legend: { traceorder: "reversed" },
        hovermode: "closest",
        xaxis: { ...log, range: decadesOf(view.rates), title: { text: "learning rate η" } },
        yaxis: { ...log, range: decadesOf(lengths, 0.25), title: { text: "length of the step in s" } },
        shapes: [
          {
            type: "line",
            yref: "paper",
            x0: view.lr,
            x1: view.lr,
            y0: 0,
            y1: 1,
            line: { color: look.palette.text, width: 1 },
            layer: "below",
          },
        ],
      },
    };
  }

  /* Whether IB's step still grows at the largest rates, in words; `sign`: of b. */
  function limitWords(view) {
    return [1, -1].map((sign) => {
      const [eb, ib] = ["eb", "ib"].map((method) =>
        view.by_rate.find((sweep) => sweep.method === method && sweep.b * sign > 0)
      );
      const start = sign > 0 ? "b > 0" : "b < 0";
      if (!eb || !ib) {
        return "";
      }
      const [before, last] = [ib.length[ib.length.length - 9], ib.length[ib.length.length - 1]];
      const said = (length) => (length === null ? "no number" : number(length));
      if (last === 0) {
        return `${start}: IB makes no step at the largest rates; EB’s is ${said(eb.length[eb.length.length - 1])}.`;
      }
      const grows = last === null || before === null || last > 2 * before;
      return grows
        ? `${start}: IB’s step grows on, to ${said(last)} at a rate of 10,000; EB’s is ${said(eb.length[eb.length.length - 1])}.`
        : `${start}: IB’s step stays near ${said(last)} however high the rate; EB’s is ${said(eb.length[eb.length.length - 1])} at 10,000.`;
    });
  }

  window.etascope.updateSweeps = { WORDS_WIDTH, jumps, withBreaks, sweepTraces, shownRange, jumpWords };
  Object.assign(window.etascope, { limitFigure, limitWords });
})();
