/* The updates page: what its sliders stand at as pictures and words. */
(function () {
  "use strict";

  const { number, signed, lookIn, element, swatch, badge, slidNumbers, drawnAlready } = window.etascope.parts;
  const keep = () => window.dash_clientside.no_update;

  /* --- Words ---------------------------------------------------------------------------------- */

  /* The numbers of both steps for one sign of b, and which case of the rule it is. */
  function updateWords(view, sign, look) {
    const steps = view.steps.filter(({ b }) => b * sign > 0);
    const cases = view.cases.filter(({ b }) => b * sign > 0);
    const [here] = steps;
    const from = `b = ${number(here.b)}, from s = ${number(here.s)}, where σ(s) = ${number(here.origin)}`;
    return [
      element("P", { className: "number figure-caption" }, from),
      numbersTable(steps, look),
      ...(cases.length ? [ruleTable(cases)] : []),
    ];
  }

  function numbersTable(steps, look) {
    const heads = ["", "lands at", "loss change", "why"].map((head) => element("Th", { scope: "col" }, head));
    const rows = steps.map((step) =>
      element(
        "Tr",
        {},
        element("Th", { scope: "row" }, swatch(look, step.method), look.methods[step.method].short),
        element("Td", { className: "number" }, number(step.landing)),
        element("Td", { className: "number" }, signed(step.change)),
        element("Td", {}, step.case)
      )
    );
    const head = element("Thead", {}, element("Tr", {}, ...heads));
    return element("Table", { className: "table steps-table" }, head, element("Tbody", {}, ...rows));
  }

  /* The lines of the paper's table; the present one is marked, not only by colour. */
  function ruleTable(cases) {
    const items = cases.map(({ condition, words, applies }) =>
      element(
        "Li",
        { className: applies ? "case applies" : "case", ...(applies ? { "aria-current": "true" } : {}) },
        element("Span", { className: "case-mark" }, applies ? "▸ " : ""),
        element("Span", { className: "case-when" }, condition),
        element("Span", {}, words)
      )
    );
    const title = element("Span", { className: "muted rule-title" }, "IB’s rule (the paper’s Table 1)");
    return element("Div", {}, title, element("Ul", { className: "cases" }, ...items));
  }

  /* What one should know about this activation and these settings. */
  function updateNotes(view) {
    const found = [exactness(view)];
    if (view.mu) {
      found.push(
        "With μ > 0 a step also shrinks the weights: s becomes s/(1 + ημ) in IB and s(1 − ημ) in EB before the rest of the step."
      );
    }
    if (view.activation === "arctan") {
      found.push(
        "IB takes the stationary point nearest zero, the smallest step, which is not always the lowest point of its objective."
      );
    }
    return found.map((words) => element("P", {}, ...[words].flat()));
  }

  function exactness(view) {
    if (view.approximation_error === null) {
      return `The implicit step of ${view.activation} is exact: a formula gives it.`;
    }
    return [
      badge("≈", "approximation"),
      ` IB solves for a piecewise-cubic stand-in that is within ${number(view.approximation_error)} of ` +
        `${view.activation} everywhere, and within ${number(view.slope_error)} of its slope. Losses are those ` +
        "of the true function.",
    ];
  }

  /* --- From sliders to pictures ------------------------------------------------------------------ */

  const WRITTEN = 8;
  const PLACE_SLIDER = "updates-place-slider";

  /* The ends, the step and the marks of the slider of s: those of the picture. */
  function endsOf(view) {
    const reach = view.s[view.s.length - 1];
    const marks = [-reach, 0, reach].map((value) => ({ value, label: number(value) }));
    return { min: -reach, max: reach, step: reach / 100, marks };
  }

  /* A thumb held at an end that gives way would run away: ends wait until it is let go. */
  let held = false;
  let waiting = null;

  function release() {
    held = false;
    if (waiting && document.getElementById(PLACE_SLIDER)) {
      window.dash_clientside.set_props(PLACE_SLIDER, waiting);
    }
    waiting = null;
  }

  document.addEventListener("pointerdown", () => { held = true; }, true);
  document.addEventListener("pointerup", release, true);
  document.addEventListener("pointercancel", release, true);

  function placeSlider(view) {
    const ends = endsOf(view);
    waiting = held ? ends : null;
    return held ? Array(4).fill(keep()) : [ends.min, ends.max, ends.step, ends.marks];
  }

  /* `rule` belongs to the activation shown last: a new one is drawn when its rule has come. */
  function drawUpdates(looks, sliders, rule, activation, reach, scheme, values, places) {
    const numbers = slidNumbers(sliders, values, places);
    const waits = !numbers || !rule || rule.activation !== activation;
    if (waits || drawnAlready("updates-down", [numbers, rule, reach, scheme])) {
      return Array(WRITTEN).fill(keep());
    }
    const view = window.etascope.nodeUpdate({ activation, reach, ...numbers }, rule);
    const look = lookIn(looks, scheme);
    window.etascope.plot("updates-down", window.etascope.updateFigure(view, 1, look));
    window.etascope.plot("updates-up", window.etascope.updateFigure(view, -1, look));
    window.etascope.plot("updates-limit", window.etascope.limitFigure(view, look));
    return [
      updateWords(view, 1, look),
      updateWords(view, -1, look),
      updateNotes(view),
      window.etascope.limitWords(view).filter(Boolean).map((words) => element("P", {}, words)),
      ...placeSlider(view),
    ];
  }

  Object.assign(window.etascope, { drawUpdates, updateWords, updateNotes });
})();
