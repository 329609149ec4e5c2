/* One node's explicit and implicit update, as /api/illustrations/update has it.

   The API's numbers, found by the rules that train, are the slow twin these are tested against. */
(function () {
  "use strict";

  const HALF_OF_THE_SAMPLES = 200;
  const NARROWEST = 2;
  /* Slopes that differ by less are the same to a reader. */
  const ALIKE = 5e-4;
  const SHALLOW = 0.01; // of the leaky relu, below zero

  /* --- Activations: value and slope, in a hinge as torch has it ----------------------------- */

  /* A sum of positive terms, so nothing cancels; beyond 6 the result rounds to 1. */
  function erf(x) {
    if (Math.abs(x) > 6) {
      return Math.sign(x);
    }
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }

  const sigmoid = (s) => 1 / (1 + Math.exp(-s));
  const bell = (s) => Math.exp((-s * s) / 2) / Math.sqrt(2 * Math.PI);
  const below = (s) => 0.5 * (1 + erf(s / Math.SQRT2));
  const clip = (s) => Math.min(Math.max(s, -1), 1);

  const ACTIVATIONS = {
    linear: [(s) => s, () => 1],
    relu: [(s) => Math.max(s, 0), (s) => (s > 0 ? 1 : 0)],
    leaky_relu: [(s) => (s > 0 ? s : SHALLOW * s), (s) => (s > 0 ? 1 : SHALLOW)],
    arctan: [Math.atan, (s) => 1 / (s * s + 1)],
    hardtanh: [clip, (s) => (s > -1 && s < 1 ? 1 : 0)],
    smoothstep: [(s) => clip(s) * (1.5 - 0.5 * clip(s) ** 2), (s) => (1 - clip(s) ** 2) * 1.5],
    tanh: [Math.tanh, (s) => 1 - Math.tanh(s) ** 2],
    sigmoid: [sigmoid, (s) => (1 - sigmoid(s)) * sigmoid(s)],
    gelu: [(s) => s * below(s), (s) => below(s) + s * bell(s)],
    silu: [(s) => s * sigmoid(s), (s) => sigmoid(s) * (1 + s * (1 - sigmoid(s)))],
    softplus: [(s) => (s > 20 ? s : Math.log1p(Math.exp(s))), (s) => (s > 20 ? 1 : sigmoid(s))],
    elu: [(s) => (s > 0 ? s : Math.expm1(s)), (s) => (s > 0 ? 1 : Math.exp(s))],
  };

  /* --- Rules: the alpha that solves eq. (8); k = lr*|z|^2, shrink = 1 + lr*mu ---------------- */

  function hardtanhAlpha(s, b, k, shrink) {
    const at = s * Math.sign(b);
    const x = Math.min(Math.max((at + shrink) / k, 0), Math.abs(b));
    return (1 - x / (2 * Math.abs(b))) * x * k - at + shrink > 0 ? (x * Math.sign(b)) / shrink : 0;
  }

  function smoothstepAlpha(s, b, k, shrink) {
    const reach = Math.abs(b) * (k / shrink);
    const damping = 1 / (1 + 3 * reach);
    const a = ((s * Math.sign(b)) / shrink + 1) * damping;
    const root = Math.max((2 * damping - 2) * a + 1, 0);
    const u = Math.min(Math.max((2 * a) / (1 + Math.sqrt(root)), 0), 2);
    return (1 - 2.25 * reach * u) * u + 1 > 0 ? (1.5 * u * (2 - u) * b) / shrink : 0;
  }

  /* The largest root of v^3 + 3uv = w, by Newton's method from above, where the cubic is convex.
     A fold met exactly counts as not yet passed. */
  function largestRoot(u, w) {
    const m = Math.sqrt(Math.max(-u, 0));
    if (w < -2 * m ** 3 * (1 + 8 * Number.EPSILON)) {
      return -largestRoot(u, -w); // the only one
    }
    let v = Math.cbrt(Math.max(w, 0)) + Math.sqrt(3) * m;
    for (let i = 0; i < 100; i += 1) {
      const next = v - (v * (v * v + 3 * u) - w) / (3 * (v * v + u));
      if (!(next < v)) {
        break;
      }
      v = next;
    }
    return v;
  }

  /* The stationary point nearest zero (Sec. 4.3); updates/arctan.py derives the cubic. */
  function arctanAlpha(s, b, k, shrink) {
    const side = s < 0 ? -1 : 1;
    const c = (side * s) / shrink;
    const u = 3 - c * c;
    const w = 2 * c * (12 - u) - 27 * side * b * (k / shrink);
    const q = c + (largestRoot(u, w) - 2 * c) / 3;
    return b / (1 + q * q) / shrink;
  }

  const RULES = {
    linear: (s, b, k, shrink) => b / shrink,
    relu(s, b, k, shrink) {
      const x = Math.min(b, Math.max(s, 0) / k);
      return s - 0.5 * k * x > 0 ? x / shrink : 0;
    },
    leaky_relu(s, b, k, shrink) {
      const x = Math.min(Math.max(s / k, SHALLOW * b), b);
      return (s - ((1 + SHALLOW) / 2) * x * k > 0 ? x : SHALLOW * b) / shrink;
    },
    arctan: arctanAlpha,
    hardtanh: hardtanhAlpha,
    smoothstep: smoothstepAlpha,
  };

  /* --- Table 1 in words --------------------------------------------------------------------- */

  const LINES = {
    1: [
      ["s ≤ 0", "No step: the node is off."],
      ["0 < s ≤ η|z|²b", "The step stops at the hinge."],
      ["s > η|z|²b", "The full step, as EB."],
    ],
    "-1": [
      ["s ≤ η|z|²b/2", "No step: the hinge is too far away."],
      ["η|z|²b/2 < s ≤ 0", "It looks past the hinge: the full step."],
      ["s > 0", "The full step, as EB."],
    ],
  };

  function lineOf(s, b, travel) {
    const bounds = b > 0 ? [0, travel * b] : [(travel * b) / 2, 0];
    return bounds.filter((bound) => s > bound).length;
  }

  function reluTable(s, b, travel) {
    return [[s, b], [-s, -b]].flatMap(([at, push]) =>
      LINES[Math.sign(push)].map(([condition, words], index) => ({
        b: push,
        condition,
        words,
        applies: index === lineOf(at, push, travel),
      }))
    );
  }

  /* Three significant digits as Python's "%.3g" writes them. */
  function general(value) {
    const [digits, power] = value.toExponential(2).split("e");
    if (power >= -4 && power < 3) {
      return String(Number(value.toPrecision(3)));
    }
    const exponent = String(Math.abs(power)).padStart(2, "0");
    return Number(digits) + (power < 0 ? "e-" : "e+") + exponent;
  }

  /* Rates of the picture of a step's limit: eight a decade, from 0.001 to 10 000. */
  const RATES = Array.from({ length: 57 }, (_, i) => 10 ** ((i - 24) / 8));

  /* --- The update --------------------------------------------------------------------------- */

  const finite = (value) => (Number.isFinite(value) ? value : null);

  /* What stays the same while s and b vary; without a travel a step is an explicit one. */
  function settingOf({ activation, lr, z_sq: inputs, mu }, knots) {
    const [value, slope] = ACTIVATIONS[activation];
    const k = lr * inputs;
    const shrink = 1 + lr * mu;
    const rule = knots ? window.etascope.cubicRule(knots) : RULES[activation];
    return {
      activation,
      k,
      shrink,
      value,
      alpha: { eb: (s, b) => slope(s) * b, ib: (s, b) => rule(s, b, k, shrink) },
      landing: {
        eb: (s, alpha) => s * (1 - lr * mu) - lr * alpha * inputs,
        ib: (s, alpha) => s / shrink - lr * alpha * inputs,
      },
    };
  }

  function caseOf(setting, method, s, b, alpha) {
    if (method === "eb") {
      return alpha ? `The slope at s is ${general(alpha / b)}.` : "No step: the slope at s is 0.";
    }
    if (setting.activation === "relu") {
      return LINES[Math.sign(b)][lineOf(s, b, setting.k)][1];
    }
    const explicit = Math.abs(setting.alpha.eb(s, b));
    const share = Math.abs(alpha) * setting.shrink; // of b, as EB's alpha is
    if (Math.abs(share - explicit) <= ALIKE * Math.abs(b)) {
      return explicit ? "As EB." : "No step, as EB.";
    }
    return share < explicit
      ? "A shorter step than EB: on the way the slope falls."
      : "A longer step than EB: on the way the slope rises.";
  }

  function stepOf(setting, method, s, b) {
    const alpha = setting.alpha[method](s, b);
    const landing = setting.landing[method](s, alpha);
    const value = setting.value(landing);
    const origin = setting.value(s);
    return {
      method,
      b,
      s,
      alpha: finite(alpha),
      landing: finite(landing),
      value: finite(value),
      loss: finite(b * value),
      origin: finite(origin),
      change: finite(b * (value - origin)),
      case: caseOf(setting, method, s, b, alpha),
    };
  }

  function sweepOf(setting, method, places, b) {
    const landing = places.map((s) => setting.landing[method](s, setting.alpha[method](s, b)));
    return {
      method,
      b,
      step: places.map((s, i) => finite(s - landing[i])),
      landing: landing.map(finite),
      loss: landing.map((at) => finite(b * setting.value(at))),
    };
  }

  /* How long the step from s is as the rate grows; `settings`: one a rate. */
  function overRates(settings, method, s, b) {
    const length = (setting) => Math.abs(s - setting.landing[method](s, setting.alpha[method](s, b)));
    return { method, b, length: settings.map((setting) => finite(length(setting))) };
  }

  /* `rule`: what the API says about the activation whatever the step (knots and error bounds). */
  function nodeUpdate(asked, rule) {
    const { activation, b, s, lr, z_sq: inputs, mu } = asked;
    const setting = settingOf(asked, rule.stand_in);
    const whole = Math.max(NARROWEST, 1.25 * Math.abs(s), 1.5 * lr * inputs * Math.abs(b));
    const reach = asked.reach || whole;
    const places = Array.from(
      { length: 2 * HALF_OF_THE_SAMPLES + 1 },
      (_, i) => (reach * (i - HALF_OF_THE_SAMPLES)) / HALF_OF_THE_SAMPLES
    );
    const atRates = RATES.map((rate) => settingOf({ ...asked, lr: rate }, rule.stand_in));
    const each = (make) => [1, -1].flatMap((sign) => ["eb", "ib"].map((method) => make(method, sign)));
    return {
      ...rule,
      activation,
      lr,
      z_sq: inputs,
      mu,
      function: { x: places, y: places.map((at) => finite(setting.value(at))) },
      steps: each((method, sign) => stepOf(setting, method, sign * s, sign * b)),
      s: places,
      sweeps: each((method, sign) => sweepOf(setting, method, places, sign * b)),
      rates: RATES,
      by_rate: each((method, sign) => overRates(atRates, method, sign * s, sign * b)),
      jump: activation === "relu" ? (-lr * inputs * Math.abs(b)) / 2 : null,
      cases: activation === "relu" ? reluTable(s, b, lr * inputs) : [],
    };
  }

  Object.assign(window.etascope, { nodeUpdate });
})();
