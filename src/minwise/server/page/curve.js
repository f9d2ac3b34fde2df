// S-curve of a layout of bands and rows, with the same digits as `minwise plan`.

export const MAX_SLOTS = 16_384;
// The curve is a polynomial of degree b·r, and Gauss's rule with n nodes is exact up to degree 2n − 1.
const MAX_NODES = 512;

// 1 − (1 − sʳ)ᵇ, through log1p and expm1: near s = 0 the plain formula loses every digit.
export const candidateProbability = (similarity, bands, rows) =>
  Math.abs(-Math.expm1(bands * Math.log1p(-(similarity ** rows))));

const rules = new Map();

// Nodes and weights of the Gauss-Legendre rule on [0, 1]: roots of the Legendre polynomial, by Newton's method.
const gauss = (nodes) => {
  if (rules.has(nodes)) return rules.get(nodes);
  const rule = [];
  for (let index = 0; index < nodes; index += 1) {
    let x = Math.cos((Math.PI * (index + 0.75)) / (nodes + 0.5));
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

const integral = (nodes, value) => gauss(nodes).reduce((sum, [node, weight]) => sum + weight * value(node), 0);

// Returns recall, steepest point and error areas of a layout.
export const curveFigures = (bands, rows, threshold) => {
  const nodes = Math.min(Math.floor((bands * rows) / 2) + 1, MAX_NODES);
  const missed = (similarity) => Math.exp(bands * Math.log1p(-(similarity ** rows)));
  const below = threshold * integral(nodes, (node) => candidateProbability(threshold * node, bands, rows));
  const width = 1 - threshold;
  const above = width > 0 ? width * integral(nodes, (node) => missed(threshold + width * node)) : 0;
  return {
    bands,
    rows,
    threshold,
    slots: bands * rows,
    recall: candidateProbability(threshold, bands, rows),
    steepest: (1 / bands) ** (1 / rows),
    falsePositive: below,
    falseNegative: above,
    falseCandidates: below / threshold,
  };
};

// Similarities to plot: evenly spaced ones, those at evenly spaced probabilities, and the threshold.
const SAMPLES = 121;

export const curveSamples = (bands, rows, threshold) => {
  const even = Array.from({ length: SAMPLES }, (_, index) => index / (SAMPLES - 1));
  const climbing = even.slice(1, -1).map((missed) => (-Math.expm1(Math.log(missed) / bands)) ** (1 / rows));
  return [...new Set([...even, ...climbing, threshold])].sort((left, right) => left - right);
};
