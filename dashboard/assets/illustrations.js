/* Sliders with an exact field beside them, and the toy's paths step by step. */
(function () {
  "use strict";

  const keep = () => window.dash_clientside.no_update;
  const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /* --- Functions the sliders name --------------------------------------------------------- */

  const short = (value) => Number(Number(value).toPrecision(3));

  window.dashMantineFunctions = Object.assign(window.dashMantineFunctions || {}, {
    powerOfTen: (place) => short(Math.pow(10, place)),
    unchanged: (place) => place,
    threeDigits: (value) => String(short(value)),
  });

  /* --- A slider and its field ------------------------------------------------------------- */

  /* Per field: the number its slider last gave it, and the place it last gave its slider. Callbacks
     run a moment after what caused them; these tell a cause from its own echo. */
  const pairs = {};

  function pairOf(id) {
    pairs[id] = pairs[id] || { given: null, put: null };
    return pairs[id];
  }

  const held = (id) => window.dash_component_api.getLayout(id).props.value;

  const numberAt = (place, log, whole) =>
    whole ? Math.round(place) : log ? short(Math.pow(10, place)) : Number(place.toFixed(4));

  function placeOf(value, log, low, high) {
    const inside = Math.min(Math.max(value, low), high);
    return log ? Math.log10(inside) : inside;
  }

  /* A slider that stands where its field put it has nothing to say. */
  function slid(id, place, log, whole, low, high) {
    const pair = pairOf(id);
    const number = numberAt(place, log, whole);
    if (place === pair.put || number === numberAt(placeOf(held(id), log, low, high), log, whole)) {
      return;
    }
    pair.put = null;
    pair.given = number;
    window.dash_clientside.set_props(id, { value: number });
  }

  /* A number moves the slider, unless it came from there or is no longer the field's. */
  function typed(id, value, log, low, high, place) {
    const pair = pairOf(id);
    if (value === pair.given || value !== held(id)) {
      return keep();
    }
    pair.given = null;
    pair.put = placeOf(value, log, low, high);
    return pair.put === place ? keep() : pair.put;
  }

  /* --- Paths step by step ----------------------------------------------------------------- */

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

  /* The ring glides to its next place; without motion, or when one drags, it is simply there. */
  const GLIDE = { duration: 350, easing: "cubic-in-out", ordering: "traces first" };

  function frame(figure, step, glide) {
    const parts = figure.data.map((trace) => (trace.meta && trace.meta.grows ? until(trace, step) : trace));
    const dots = parts.find((trace) => trace.name === "dots");
    const data = parts.map((trace) =>
      trace.meta && trace.meta.head ? Object.assign({}, trace, { x: dots.x.slice(-1), y: dots.y.slice(-1) }) : trace
    );
    const layout = glide ? Object.assign({}, figure.layout, { transition: GLIDE }) : figure.layout;
    return Object.assign({}, figure, { data, layout });
  }

  /* All pictures as they are at a step, and that step in words. */
  function showStep(figures, at, stopped) {
    if (!figures) {
      return [keep(), keep(), keep(), keep(), keep()];
    }
    const step = Math.min(at, figures.steps);
    const words = "Step " + step + " of " + figures.steps;
    return [...figures.pictures.map((figure) => frame(figure, step, !stopped)), words];
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

  /* --- Places on a page ------------------------------------------------------------------- */

  /* The page is drawn after the browser looked for the address's anchor, so look again. */
  function scrollToAnchor() {
    const anchor = decodeURIComponent(window.location.hash.slice(1));
    window.requestAnimationFrame(() => {
      const target = anchor && document.getElementById(anchor);
      if (target) {
        target.scrollIntoView();
        target.classList.add("arrived");
        target.focus({ preventScroll: true });
      }
    });
    return keep();
  }

  Object.assign(window.etascope, { slid, typed, showStep, moveStep, scrollToAnchor });
})();
