// Curve: bands, rows and a threshold in, the S-curve and its figures out, to the digits of `minwise plan`.

export const MOST_SLOTS = 16_384;
// The curve is a polynomial of degree b·r, and Gauss's rule with n nodes is exact up to degree 2n − 1.
const MOST_NODES = 512;

// 1 − (1 − sʳ)ᵇ, through log1p and expm1: near s = 0 the plain formula loses every digit.
export const chance = (similarity, bands, rows) => Math.abs(-Math.expm1(bands * Math.log1p(-(similarity ** rows))));

const rules = new Map();

// Places and weights of the Gauss-Legendre rule on [0, 1]: roots of the Legendre polynomial, by Newton's method.
const gauss = (nodes) => {
  if (rules.has(nodes)) return rules.get(nodes);
  const rule = [];
  for (let place = 0; place < nodes; place += 1) {
    let x = Math.cos((Math.PI * (place + 0.75)) / (nodes + 0.5));
    let slope = 1;
    for (let step = 0; step < 100; step += 1) {
      let [now, before] = [1, 0];
      for (let degree = 0; degree < nodes; degree += 1) {
        [now, before] = [((2 * degree + 1) * x * now - degree * before) / (degree + 1), now];
      }
      slope = (nodes * (x * now - before)) / (x * x - 1);
      const move = now / slope;
      x -= move;
      if (Math.abs(move) < 1e-15) break;
    }
    rule.push([(1 + x) / 2, 1 / ((1 - x * x) * slope * slope)]);
  }
  rules.set(nodes, rule);
  return rule;
};

const integral = (nodes, value) => gauss(nodes).reduce((sum, [place, weight]) => sum + weight * value(place), 0);

// Everything there is to say of a layout.
export const figuresOf = (bands, rows, threshold) => {
  const nodes = Math.min(Math.floor((bands * rows) / 2) + 1, MOST_NODES);
  const missed = (similarity) => Math.exp(bands * Math.log1p(-(similarity ** rows)));
  const below = threshold * integral(nodes, (place) => chance(threshold * place, bands, rows));
  const above = threshold < 1 ? (1 - threshold) * integral(nodes, (place) => missed(threshold + (1 - threshold) * place)) : 0;
  return {
    bands,
    rows,
    threshold,
    slots: bands * rows,
    recall: chance(threshold, bands, rows),
    steepest: (1 / bands) ** (1 / rows),
    falsePositive: below,
    falseNegative: above,
    falseCandidates: below / threshold,
  };
};

// Similarities at which to draw: evenly spread, where the curve climbs by even steps, and the threshold.
const SAMPLES = 121;

export const samples = (bands, rows, threshold) => {
  const even = Array.from({ length: SAMPLES }, (_, place) => place / (SAMPLES - 1));
  const climbing = even.slice(1, -1).map((missed) => (-Math.expm1(Math.log(missed) / bands)) ** (1 / rows));
  return [...new Set([...even, ...climbing, threshold])].sort((one, other) => one - other);
};
