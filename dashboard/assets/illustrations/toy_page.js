/* The toy page: what its sliders stand at as pictures and words, and a path step by step. */
(function () {
  "use strict";

  const { number, lookIn, element, swatch, badge, slidNumbers, drawnAlready } = window.etascope.parts;
  const keep = () => window.dash_clientside.no_update;
  const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /* --- Words ---------------------------------------------------------------------------------- */

  /* The loss and what is special about descending it. */
  const LOSS_WORDS = {
    quadratic: [
      "f(θ) = λθ²/2",
      "The paper's example. Its slope grows with the distance from the minimum.",
    ],
    absolute: [
      "f(θ) = λ|θ|",
      "Its slope has the same size everywhere, so every explicit step is ηλ long, also next to the minimum; the implicit step stops on the minimum once it is within reach.",
    ],
    logistic: [
      "f(θ) = 4λ log cosh(θ/2)",
      "The logistic loss of two opposite examples. Its slope is never above 2λ, so beyond the limit explicit steps do not run away but jump to and fro for ever.",
    ],
    arctan_well: [
      "f(θ) = λ arctan(θ)²/2",
      "Far from the minimum it is nearly flat: an explicit step that jumps over the well lands where there is hardly any slope to come back by. It is not convex.",
    ],
  };
  /* A mark, a colour, and the words that say the same: where a factor tells what will become of a
     path, and where only what was seen can be said. */
  const BADGES = {
    converges: ["✓", "good", "converges", "converges"],
    oscillates: ["≈", "fair", "converges, oscillating", "oscillates"],
    cycles: ["↔", "fair", "goes to and fro for ever", "goes to and fro"],
    diverges: ["✕", "bad", "diverges", "does not converge"],
  };
  const SEEN_WORDS = {
    converges: "Its steps bring it to the minimum.",
    oscillates: "It jumps over the minimum again and again; its last jump was the shorter one.",
    cycles: "It keeps jumping between the same points and never settles.",
    diverges: "After the last step it is farther from the minimum than at the start.",
  };
  const TITLE_OF = { esgd: "Explicit (ESGD)", isgd: "Implicit (ISGD)" };

  /* With more digits where the rate would otherwise read the same and is not. */
  function limitOf({ stability_limit: limit, lr }) {
    return lr !== limit && number(lr) === number(limit) ? String(Number(limit.toPrecision(6))) : number(limit);
  }

  function factorWords(view, { method, factor }) {
    const limit = limitOf(view);
    if (method === "isgd") {
      return "That lies between 0 and 1 at every rate: it converges, and never jumps over the minimum.";
    }
    if (factor > 0) {
      return "It stays on its side of the minimum and converges.";
    }
    if (factor === 0) {
      return "It lands on the minimum in one step.";
    }
    if (factor > -1) {
      return `It jumps over the minimum, less far every time, as the rate is below 2/λ = ${limit}.`;
    }
    return factor === -1
      ? `The rate is exactly 2/λ = ${limit}: it jumps to and fro for ever, never nearer and never farther.`
      : `It jumps farther every time, as at every rate above 2/λ = ${limit}.`;
  }

  function limitWords(view, { method }) {
    const limit = view.stability_limit;
    if (method === "isgd" || limit === null) {
      return "";
    }
    const side = view.lr > limit ? "above" : view.lr < limit ? "below" : "exactly";
    return ` The rate is ${side} 2/λ = ${limitOf(view)}.`;
  }

  function sentences(view, path) {
    if (path.factor === null) {
      return [SEEN_WORDS[path.verdict] + limitWords(view, path)];
    }
    const formula = path.method === "esgd" ? "1 − ηλ" : "1/(1 + ηλ)";
    const factor = element("Strong", { className: "number" }, `${formula} = ${number(path.factor)}`);
    return ["Every step multiplies θ by ", factor, ". " + factorWords(view, path)];
  }

  function paragraph(view, path, look) {
    const [mark, kind, known, seen] = BADGES[path.verdict];
    const name = element("Strong", {}, TITLE_OF[path.method]);
    const heading = element(
      "Div",
      { className: "verdict-head" },
      element("Span", { className: "row" }, swatch(look, window.etascope.toyPaths.STYLE_OF[path.method]), name),
      badge(mark, path.factor === null ? seen : known, kind)
    );
    return element("Div", { className: "verdict" }, heading, element("P", {}, ...sentences(view, path)));
  }

  function descentWords(view, look) {
    const [formula, words] = LOSS_WORDS[view.loss];
    const about = element("P", { className: "muted" }, element("Strong", {}, formula), ". " + words);
    return [...view.paths.map((path) => paragraph(view, path, look)), about];
  }

  /* --- From sliders to pictures ----------------------------------------------------------------- */

  /* The stability limit as a mark above the rate's slider, if there is one. */
  function limitMark({ stability_limit: limit }, { low, high }) {
    if (limit === null || limit < low || limit > high) {
      return ["", { display: "none" }];
    }
    const share = Math.log(limit / low) / Math.log(high / low);
    return [`limit 2/λ = ${number(limit)}`, { left: (100 * share).toFixed(2) + "%" }];
  }

  let drawings = 0;

  /* Draws all pictures at once, before anything else follows from new numbers. */
  function drawToy(looks, sliders, loss, log, scheme, values, places, at, stopped) {
    const numbers = slidNumbers(sliders, values, places);
    if (!numbers || drawnAlready("toy-explicit", [numbers, loss, log, scheme])) {
      return [keep(), keep(), keep(), keep()];
    }
    const view = window.etascope.descent({ loss, ...numbers });
    const look = lookIn(looks, scheme);
    const { pathFigure, historyFigure } = window.etascope.toyPaths;
    const pictures = {
      "toy-explicit": pathFigure(view, "esgd", look),
      "toy-implicit": pathFigure(view, "isgd", look),
      "toy-losses": historyFigure(view, "loss", look, log),
      "toy-thetas": historyFigure(view, "theta", look),
    };
    const rate = sliders.find(({ name }) => name === "lr");
    drawings += 1;
    const figures = { drawing: drawings, steps: view.steps, pictures };
    showStep(figures, stopped ? view.steps : at);
    return [figures, descentWords(view, look), ...limitMark(view, rate)];
  }

  /* --- Paths step by step ----------------------------------------------------------------------- */

  const LISTS = ["x", "y", "text", "customdata", "textposition"];

  function kept(list, keepers) {
    return Array.isArray(list) ? keepers.map((index) => list[index]) : list;
  }

  /* The part of a trace that has happened by a step. */
  function until(trace, step) {
    const keepers = trace.customdata.map((_, i) => i).filter((i) => trace.customdata[i] <= step);
    const part = Object.assign({}, trace);
    LISTS.forEach((name) => {
      part[name] = kept(trace[name], keepers);
    });
    if (trace.marker) {
      part.marker = Object.assign({}, trace.marker, {
        size: kept(trace.marker.size, keepers),
        color: kept(trace.marker.color, keepers),
      });
    }
    return part;
  }

  function frame(figure, step) {
    const parts = figure.data.map((trace) => (trace.meta && trace.meta.grows ? until(trace, step) : trace));
    const dots = parts.find((trace) => trace.name === "dots");
    const data = parts.map((trace) =>
      trace.meta && trace.meta.head ? Object.assign({}, trace, { x: dots.x.slice(-1), y: dots.y.slice(-1) }) : trace
    );
    return { data, layout: figure.layout };
  }

  let shown = "";

  /* Draws all pictures as they are at a step, unless they are; returns that step in words. */
  function showStep(figures, at) {
    if (!figures) {
      return keep();
    }
    const step = Math.min(at, figures.steps);
    if (shown !== `${figures.drawing} at ${step}`) {
      shown = `${figures.drawing} at ${step}`;
      Object.entries(figures.pictures).forEach(([id, figure]) => window.etascope.plot(id, frame(figure, step)));
    }
    return "Step " + step + " of " + figures.steps;
  }

  /* Which step to show after a button, a tick or new numbers: [step, last step, tick off, label]. */
  function moveStep(figures, at, stopped) {
    const triggered = (window.dash_clientside.callback_context.triggered || []).map((t) => t.prop_id);
    const by = (id) => triggered.some((name) => name.startsWith(id + "."));
    const last = figures ? figures.steps : at;
    const rest = (step) => [Math.min(Math.max(step, 0), last), last, true, "Play"];
    if (by("toy-figures") || triggered.length === 0) {
      return rest(stopped ? last : Math.min(at, last));
    }
    if (by("toy-back")) {
      return rest(at - 1);
    }
    if (by("toy-next")) {
      return rest(at + 1);
    }
    if (by("toy-play")) {
      if (!stopped) {
        return rest(at);
      }
      return calm() ? rest(last) : [at >= last ? 0 : at, last, false, "Pause"];
    }
    return at + 1 >= last ? rest(last) : [at + 1, last, false, "Pause"];
  }

  Object.assign(window.etascope, { drawToy, descentWords, limitMark, showStep, moveStep });
})();
