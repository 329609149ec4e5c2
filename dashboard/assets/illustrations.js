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

  Object.assign(window.etascope, { slid, typed, numberAt, placeOf, scrollToAnchor });
})();
