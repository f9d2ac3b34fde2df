// Plot of an S-curve. The curve is scaled to the available space; line widths and labels are not.

import { candidateProbability, curveSamples } from "./curve.js";
import { draw } from "./elements.js";
import { formatProbability } from "./formatting.js";

const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
// A threshold closer to an edge than this has its label at that edge.
const EDGE = 0.35;

const across = (value) => `${(100 * value).toFixed(3)}%`;
const up = (value) => `${(100 - 100 * value).toFixed(3)}%`;

const grid = () =>
  TICKS.flatMap((tick) => [
    draw("line", { class: "grid", x1: across(tick), x2: across(tick), y1: "0%", y2: "100%" }),
    draw("line", { class: "grid", x1: "0%", x2: "100%", y1: up(tick), y2: up(tick) }),
    draw("text", { class: "across", x: across(tick), y: "100%", dy: "20" }, String(tick)),
    draw("text", { class: "up", x: "0%", y: up(tick), dx: "-10", dy: "4" }, String(tick)),
  ]);

const panel = ({ bands, rows, threshold }) => {
  const all = curveSamples(bands, rows, threshold);
  const point = (s) => `${(100 * s).toFixed(2)} ${(100 - 100 * candidateProbability(s, bands, rows)).toFixed(2)}`;
  const path = (similarities) => `M${similarities.map(point).join(" L")}`;
  const edge = (100 * threshold).toFixed(2);
  return draw(
    "svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%", "aria-hidden": "true" },
    draw("path", { class: "false-positive", d: `${path(all.filter((s) => s <= threshold))} L${edge} 100 Z` }),
    draw("path", { class: "false-negative", d: `${path(all.filter((s) => s >= threshold))} L${edge} 0 Z` }),
    draw("path", { class: "curve", d: path(all) }),
  );
};

// Label above the plot, within its width.
const thresholdLabel = ({ threshold, recall }) => {
  const text = `threshold ${threshold}, recall ${formatProbability(recall)}`;
  if (threshold > 1 - EDGE) return draw("text", { class: "strong end", x: "100%", y: "0%", dy: "-14" }, text);
  if (threshold < EDGE) return draw("text", { class: "strong", x: "0%", y: "0%", dy: "-14" }, text);
  return draw("text", { class: "strong middle", x: across(threshold), y: "0%", dy: "-14" }, text);
};

const marks = ({ threshold, recall }) => [
  draw("line", { class: "threshold", x1: across(threshold), x2: across(threshold), y1: "-2%", y2: "100%" }),
  draw("circle", { class: "promise", cx: across(threshold), cy: up(recall), r: "5" }),
];

// Text alternative of the plot.
const description = ({ threshold, recall, steepest, falsePositive, falseNegative }) =>
  `Probability of comparing two documents, by their similarity. ` +
  `At the threshold ${threshold} it is ${formatProbability(recall)}. ` +
  `The curve is steepest near ${steepest.toFixed(2)}. ` +
  `Area below the curve left of the threshold: ${formatProbability(falsePositive)}. ` +
  `Area above the curve right of it: ${formatProbability(falseNegative)}.`;

export const curvePlot = (figures) =>
  draw(
    "svg",
    { class: "plot", role: "img", "aria-label": description(figures) },
    ...grid(),
    panel(figures),
    draw("line", { class: "axis", x1: "0%", x2: "0%", y1: "0%", y2: "100%" }),
    draw("line", { class: "axis", x1: "0%", x2: "100%", y1: "100%", y2: "100%" }),
    ...marks(figures),
    thresholdLabel(figures),
  );
