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

  /* While a thumb is dragged the server is asked some eight times a second, not sixty. */
  const PAUSE = 120;
  /* How long nothing must happen before slider and field are compared. */
  const REST = 500;

  /* Per field: what the slider wants it to be, the next sending, where the slider stands, what it
     sent of late, and the next comparison.

     A field repeats every number it is given, on a busy machine long after: late enough to undo
     the next one. So what the slider sent of late never moves it, and once all is quiet the
     slider has the last word. */
  const fields = {};

  function fieldOf(id) {
    fields[id] = fields[id] || { wanted: null, timer: null, stands: null, recent: [], rest: null };
    return fields[id];
  }

  const held = (id) => window.dash_component_api.getLayout(id).props.value;

  const numberAt = (place, log, whole) =>
    whole ? Math.round(place) : log ? short(Math.pow(10, place)) : Number(place.toFixed(4));

  function placeOf(value, log, low, high) {
    const inside = Math.min(Math.max(value, low), high);
    return log ? Math.log10(inside) : inside;
  }

  function send(id, field) {
    if (field.wanted === null) {
      field.timer = null;
      return;
    }
    field.recent.push(field.wanted);
    window.dash_clientside.set_props(id, { value: field.wanted });
    field.wanted = null;
    field.timer = window.setTimeout(() => send(id, field), PAUSE);
  }

  function settleLater(id, field) {
    window.clearTimeout(field.rest);
    field.rest = window.setTimeout(() => settle(id, field), REST);
  }

  function settle(id, field) {
    const now = document.getElementById(id) ? held(id) : field.stands; // the page may have gone
    const undone = now !== field.stands && field.recent.includes(now);
    if (!undone && field.timer === null) {
      field.recent = [];
      return;
    }
    if (field.timer === null) {
      window.dash_clientside.set_props(id, { value: field.stands });
    }
    settleLater(id, field);
  }

  /* A slider that stands where its field put it has nothing to say. */
  function slid(id, place, log, whole, low, high) {
    const field = fieldOf(id);
    const now = held(id);
    field.stands = numberAt(place, log, whole);
    field.wanted =
      typeof now === "number" && field.stands === numberAt(placeOf(now, log, low, high), log, whole)
        ? null
        : field.stands;
    if (field.timer === null) {
      send(id, field);
    }
    settleLater(id, field);
  }

  /* A typed number moves the slider; one that came from the slider must not move it back. */
  function typed(id, value, log, low, high, place) {
    const field = fieldOf(id);
    if (field.recent.includes(value)) {
      settleLater(id, field);
      return keep();
    }
    if (typeof value !== "number" || value !== held(id)) {
      return keep();
    }
    field.wanted = null;
    field.recent = [];
    const target = placeOf(value, log, low, high);
    return target === place ? keep() : target;
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
