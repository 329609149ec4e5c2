/* The implicit step of a piecewise-cubic activation (Sec. 4.4), one node at a time.

   ib_core/updates/piecewise_cubic.py explains what is computed and why it is sound; this is the
   same search for the lowest phi(q) = beta*sigma(q) + (c - q)^2/2, with everything divided by
   1 + |beta| + |c|. Knots, [x, value, slope on the left, slope on the right], come from the API. */
(function () {
  "use strict";

  const FLAT = 1e-12;
  /* A little more than a half: ties go to the shorter step. */
  const HALF = 0.5 + 4 * Number.EPSILON;

  /* e and f of y + m*u + e*u^2 + f*u^3 between two knots, u measured from the left one. */
  function bend([x0, y0, , m0], [x1, y1, m1]) {
    const width = x1 - x0;
    const rise = (y1 - y0) / width;
    return [(3 * rise - 2 * m0 - m1) / width, (m0 + m1 - 2 * rise) / width ** 2];
  }

  /* A piece expanded about the point where it curves least. */
  function flattestPoint(left, right) {
    const [x, y, , m] = left;
    const width = right[0] - x;
    const [e, f] = bend(left, right);
    if (e * (e + 3 * f * width) < 0) {
      const u = -e / (3 * f);
      const there = { x0: x + u, y: y + u * (m + u * (e + u * f)), m: m + u * e, e: 0, f };
      return { ...there, low: -u, high: width - u };
    }
    if (Math.abs(e) <= Math.abs(e + 3 * f * width)) {
      return { x0: x, y, m, e, f, low: 0, high: width };
    }
    return { x0: right[0], y: right[1], m: right[2], e: e + 3 * f * width, f, low: -width, high: 0 };
  }

  const piecesOf = (knots) => knots.slice(1).map((right, i) => flattestPoint(knots[i], right));

  /* Returns the scaled step c - q to the lowest phi, and the slope of sigma there. */
  function lowest(knots, pieces, c, beta, unit) {
    const weight = beta * unit;
    let best = { phi: Infinity, step: 0, slope: 0 };
    const consider = (valid, phi, step, slope) => {
      best = valid && phi < best.phi ? { phi, step, slope } : best;
    };
    /* -phi' at x, approached along a slope. */
    const descent = (x, slope) => c - unit * x - beta * slope;

    function onLine([, value], slope, atKnot, valid) {
      const step = beta * slope;
      consider(valid, beta * (unit * value + slope * atKnot) + HALF * step * step, step, slope);
    }

    function inKink([x, value, left, right], valid) {
      const step = c - unit * x;
      const slope = Math.min(Math.max(step / beta || 0, Math.min(left, right)), Math.max(left, right));
      consider(valid, weight * value + HALF * step * step, step, slope);
    }

    function onPiece({ x0, y, m, e, f, low, high }, knot, start, end) {
      const between = start > 0 && !(end > 0);
      if (Math.abs(e) * (high - low) < FLAT && Math.abs(f) * (high - low) ** 2 < FLAT) {
        onLine(knot, knot[3], start, between);
        return;
      }
      const g = descent(x0, m);
      const p = Math.max(unit + 2 * e * beta, 0);
      const exact = (2 * g) / (p + Math.sqrt(p * p + 12 * f * beta * g));
      const u = Number.isNaN(exact) ? 0 : Math.min(Math.max(exact, low), high);
      const step = c - unit * (x0 + u);
      const sigma = y + u * (m + u * (e + u * f));
      const phi = weight * sigma + HALF * step * step;
      consider(between || exact === u, phi, step, m + u * (2 * e + 3 * f * u));
    }

    let end = descent(knots[0][0], knots[0][2]);
    let start = end;
    onLine(knots[0], knots[0][2], end, !(end > 0));
    knots.forEach((knot, i) => {
      start = end;
      if (knot[2] !== knot[3]) {
        start = descent(knot[0], knot[3]);
        inKink(knot, end > 0 && !(start > 0));
      }
      if (i < pieces.length) {
        end = descent(knots[i + 1][0], knots[i + 1][2]);
        onPiece(pieces[i], knot, start, end);
      }
    });
    const last = knots[knots.length - 1];
    onLine(last, last[3], start, start > 0);
    return best;
  }

  /* The rule of a stand-in: (s, b, k, shrink) -> alpha, in a tie the smaller one. */
  function cubicRule(knots) {
    const pieces = piecesOf(knots);
    return (s, b, k, shrink) => {
      const c = s / shrink;
      const beta = b * (k / shrink);
      const unit = 1 / (1 + Math.abs(beta) + Math.abs(c));
      const { step, slope } = lowest(knots, pieces, c * unit, beta * unit, unit);
      return Math.abs(beta) >= 1 ? step / unit / k : (slope * b) / shrink;
    };
  }

  Object.assign(window.etascope, { cubicRule });
})();
