/* Sliders with an exact field beside them. */
(function () {
  "use strict";

  const keep = () => window.dash_clientside.no_update;

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

  Object.assign(window.etascope, { slid, typed, scrollToAnchor });
})();
