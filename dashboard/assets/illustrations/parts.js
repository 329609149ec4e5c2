/* What both illustrated pages draw and write with: numbers in words, the visible part of a path,
   page elements, and where a slider stands. */
(function () {
  "use strict";

  /* --- Numbers as dashboard/theme.py writes them ------------------------------------------- */

  const SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const trimmed = (text) =>
    (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text).replace("-", "−");

  function number(value) {
    if (value === null || !Number.isFinite(value)) {
      return "–";
    }
    if (value === 0) {
      return "0";
    }
    const text = value.toExponential(2);
    const [mantissa, exponent] = text.split("e");
    const power = Number(exponent);
    if (Math.abs(power) <= 3 || (Math.abs(value) >= 0.001 && Math.abs(value) < 10000)) {
      return trimmed(Number(text).toFixed(Math.max(0, 2 - power)));
    }
    const raised = String(Math.abs(power)).replace(/\d/g, (digit) => SUPERSCRIPT[digit]);
    return trimmed(mantissa) + "×10" + (power < 0 ? "⁻" : "") + raised;
  }

  const signed = (value) => (value > 0 ? "+" : "") + number(value);

  /* --- The part of the plane a picture shows ------------------------------------------------- */

  /* A diverging path would stretch its axes until nothing else is visible. So the axes are chosen
     first, and a path is cut at their edge: what leaves is drawn up to it and said in words. */
  function windowAround(xs, ys, room = 0.06) {
    const heights = ys.filter((y) => y !== null);
    const low = Math.min(...heights);
    const high = Math.max(...heights);
    const spare = room * (high - low || 1);
    return windowOf(xs[0], xs[xs.length - 1], low - spare, high + spare);
  }

  function windowOf(left, right, bottom, top) {
    return { left, right, bottom, top, width: right - left, height: top - bottom };
  }

  const holds = (seen, [x, y]) => seen.left <= x && x <= seen.right && seen.bottom <= y && y <= seen.top;

  /* The visible part of a straight line, null if there is none (Liang-Barsky). */
  function cut(seen, [x0, y0], [x1, y1]) {
    const [dx, dy] = [x1 - x0, y1 - y0];
    let [enters, leaves] = [0, 1];
    /* Per edge: how fast the line moves outwards, and how far inside it starts. */
    const edges = [[-dx, x0 - seen.left], [dx, seen.right - x0], [-dy, y0 - seen.bottom], [dy, seen.top - y0]];
    for (const [along, inside] of edges) {
      if (along === 0 && inside < 0) {
        return null;
      }
      if (along < 0) {
        enters = Math.max(enters, inside / along);
      } else if (along > 0) {
        leaves = Math.min(leaves, inside / along);
      }
    }
    const at = (share) =>
      share === 0 ? [x0, y0] : share === 1 ? [x1, y1] : [x0 + share * dx, y0 + share * dy];
    return enters > leaves ? null : [at(enters), at(leaves)];
  }

  /* What of a path can be drawn; a missing coordinate is a step to infinity. Returns the visible
     `dots` [step, point], the visible parts of their connections as `lines` [step, from, to], the
     `exits` among them, and `leftAt`, the first step that is not visible, null if all are. What
     merely crosses the picture between two invisible points is left out. */
  function visiblePath(seen, xs, ys) {
    const points = xs.map((x, i) => (x === null || ys[i] === null ? null : [x, ys[i]]));
    const shown = points.map((at) => at !== null && holds(seen, at));
    const lines = points.flatMap((end, step) => {
      const start = step > 0 ? points[step - 1] : null;
      const touched = start && end && (shown[step - 1] || shown[step]);
      const part = touched ? cut(seen, start, end) : null;
      return part ? [[step, ...part]] : [];
    });
    const leftAt = shown.indexOf(false);
    return {
      dots: points.flatMap((at, step) => (shown[step] ? [[step, at]] : [])),
      lines,
      exits: lines.filter(([step]) => !shown[step]),
      leftAt: leftAt < 0 ? null : leftAt,
      returns: leftAt >= 0 && shown.indexOf(true, leftAt) >= 0,
    };
  }

  /* --- Colours and elements ------------------------------------------------------------------ */

  /* A page's colours in light or dark, out of what the server knows of them (look.py). */
  const lookIn = (looks, scheme) => {
    const name = scheme === "dark" ? "dark" : "light";
    const ink = (method) => looks.methods[method]["ink_" + name];
    return { methods: looks.methods, ...looks[name], ink };
  };

  function faint(colour, opacity) {
    const parts = [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
    return `rgba(${parts.join(",")},${opacity})`;
  }

  /* An element as a callback may return it. */
  const element = (type, props, ...children) => ({
    type,
    namespace: "dash_html_components",
    props: { ...props, children },
  });

  const swatch = (look, method) =>
    element("Span", {
      className: "swatch",
      style: { background: look.methods[method].colour },
      "aria-hidden": "true",
    });

  const badge = (mark, words, kind = "") =>
    element(
      "Span",
      { className: ("verdict-badge " + kind).trim() },
      element("Span", { className: "verdict-mark", "aria-hidden": "true" }, mark),
      words
    );

  /* --- Numbers that are slid ----------------------------------------------------------------- */

  /* A field follows its slider a moment later, a picture should at once: so pictures read the
     slider, unless the field says the same more exactly or has changed since. */
  const AT_REST = 250;
  const stands = {};

  function slidNumber(slider, value, place, triggered) {
    const known = (stands[slider.id] = stands[slider.id] || { number: value, slid: -Infinity });
    const { log, whole, low, high } = slider;
    const { numberAt, placeOf } = window.etascope;
    const here = numberAt(place, log, whole);
    const agree = typeof value === "number" && here === numberAt(placeOf(value, log, low, high), log, whole);
    if (triggered.includes(slider.id + "-slider.value") && !agree) {
      known.slid = performance.now();
      known.number = here;
    } else if (agree || performance.now() - known.slid > AT_REST) {
      known.number = value;
    }
    return known.number;
  }

  /* What sliders stand at, by name; null while a field holds no number its slider allows. */
  function slidNumbers(sliders, values, places) {
    const context = window.dash_clientside.callback_context;
    const triggered = ((context && context.triggered) || []).map((one) => one.prop_id);
    const numbers = {};
    sliders.forEach((slider, i) => {
      numbers[slider.name] = slidNumber(slider, values[i], places[i], triggered);
    });
    const legal = ({ name, low, high }) =>
      typeof numbers[name] === "number" && low <= numbers[name] && numbers[name] <= high;
    return sliders.every(legal) ? numbers : null;
  }

  /* Whether a picture shows these settings: a field repeats what its slider has said before. */
  function drawnAlready(id, settings) {
    const node = document.getElementById(id);
    const wanted = JSON.stringify(settings);
    const already = node && node.settings === wanted;
    if (node) {
      node.settings = wanted;
    }
    return already;
  }

  window.etascope.parts = {
    number, signed, windowAround, windowOf, cut, visiblePath, lookIn, faint, element, swatch, badge, slidNumbers,
    drawnAlready,
  };
})();
