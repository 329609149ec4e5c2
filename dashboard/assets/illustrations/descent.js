/* Explicit and implicit descent on a one-dimensional loss, as /api/illustrations/quadratic has it.

   The API's numbers are the slow twin these are tested against: both are asked the same questions
   and must answer alike. Here they follow a slider without a server between. */
(function () {
  "use strict";

  const HALF_OF_THE_SAMPLES = 100;
  const NARROWEST = 0.5;
  /* Of two steps to and fro the second reaches at least this share of the first in a circle. */
  const SHRINKING = 0.99;

  /* Exact next to 0, where the difference to log 2 would be rounding, and far from it. */
  function logCosh(x) {
    const size = Math.abs(x);
    return size < 1
      ? Math.log1p(2 * Math.sinh(size / 2) ** 2)
      : size + Math.log1p(Math.exp(-2 * size)) - Math.LN2;
  }

  /* Losses of curvature 1 with their minimum 0 at 0; `limit` and `proximal` as in toy_losses.py. */
  const LOSSES = {
    quadratic: {
      value: (x) => (x * x) / 2,
      slope: (x) => x,
      limit: 2,
      proximal: (theta, k) => theta / (1 + k),
    },
    absolute: {
      value: Math.abs,
      slope: Math.sign,
      limit: null,
      proximal: (theta, k) => Math.sign(theta) * Math.max(Math.abs(theta) - k, 0),
    },
    logistic: {
      value: (x) => 4 * logCosh(x / 2),
      slope: (x) => 2 * Math.tanh(x / 2),
      limit: 2,
    },
    arctan_well: {
      value: (x) => Math.atan(x) ** 2 / 2,
      slope: (x) => Math.atan(x) / (1 + x * x),
      limit: 2,
    },
  };

  const GRID = 200;
  const HALVINGS = 60;

  /* The u that minimises k * loss(u) + (u - theta)^2 / 2, eq. (1): it lies between 0 and theta. The
     well is not convex, so that stretch is searched first; then the slope is followed to its zero. */
  function implicitStep(loss, theta, k) {
    if (loss.proximal) {
      return loss.proximal(theta, k);
    }
    const cost = (u) => k * loss.value(u) + (u - theta) ** 2 / 2;
    let best = 0;
    let lowest = cost(0);
    for (let i = 1; i <= GRID; i += 1) {
      const here = cost((theta * i) / GRID);
      [best, lowest] = here < lowest ? [i, here] : [best, lowest];
    }
    let near = (theta * Math.max(best - 1, 0)) / GRID;
    let far = (theta * Math.min(best + 1, GRID)) / GRID;
    for (let i = 0; i < HALVINGS; i += 1) {
      const middle = (near + far) / 2;
      const outwards = (k * loss.slope(middle) + middle - theta) * Math.sign(theta) < 0;
      [near, far] = outwards ? [middle, far] : [near, middle];
    }
    return (near + far) / 2;
  }

  /* The iterates; null once they have left the finite numbers. */
  function pathOf(start, steps, step) {
    const path = Array(steps + 1).fill(null);
    path[0] = start;
    for (let t = 0; t < steps; t += 1) {
      const after = step(path[t]);
      if (!Number.isFinite(after)) {
        break;
      }
      path[t + 1] = after;
    }
    return path;
  }

  /* Whether the last two steps lead to and fro, on both sides of the minimum. */
  function goesInACircle(path) {
    const [before, middle, last] = path.slice(-3);
    if (path.length < 3 || last === null || last * middle >= 0) {
      return false;
    }
    const there = middle - before;
    const back = last - middle;
    return Math.abs(there + back) < (1 - SHRINKING) * Math.abs(back);
  }

  function verdictOf(path, factor) {
    let known = factor;
    if (known === null) {
      if (goesInACircle(path)) {
        return "cycles";
      }
      const [before, last] = path.slice(-2);
      if (before === 0 || last === 0) {
        return "converges";
      }
      if (last === null || Math.abs(last) > Math.abs(path[0]) * (1 + 1e-9)) {
        return "diverges";
      }
      known = last / before;
    }
    if (known < -1) {
      return "diverges";
    }
    if (known === -1) {
      return "cycles";
    }
    return known < 0 ? "oscillates" : "converges";
  }

  const finite = (value) => (Number.isFinite(value) ? value : null);

  function read(method, path, loss, curvature, factor) {
    return {
      method,
      theta: path,
      loss: path.map((at) => (at === null ? null : finite(curvature * loss.value(at)))),
      factor,
      verdict: verdictOf(path, factor),
    };
  }

  /* A loss drawn from -reach to reach. */
  function lossCurve(name, curvature, reach) {
    const places = Array.from(
      { length: 2 * HALF_OF_THE_SAMPLES + 1 },
      (_, i) => (reach * (i - HALF_OF_THE_SAMPLES)) / HALF_OF_THE_SAMPLES
    );
    return { x: places, y: places.map((x) => finite(curvature * LOSSES[name].value(x))) };
  }

  function descent({ loss: name, curvature, start, lr, steps }) {
    const loss = LOSSES[name];
    const k = lr * curvature;
    const exact = name === "quadratic";
    const explicit = pathOf(start, steps, (theta) => theta - k * loss.slope(theta));
    const implicit = pathOf(start, steps, (theta) => implicitStep(loss, theta, k));
    return {
      loss: name,
      curvature,
      start,
      lr,
      steps,
      stability_limit: loss.limit === null ? null : loss.limit / curvature,
      minimum: 0,
      function: lossCurve(name, curvature, 1.5 * Math.max(Math.abs(start), NARROWEST)),
      paths: [
        read("esgd", explicit, loss, curvature, exact ? 1 - k : null),
        read("isgd", implicit, loss, curvature, exact ? 1 / (1 + k) : null),
      ],
    };
  }

  Object.assign(window.etascope, { descent, lossCurve });
})();
