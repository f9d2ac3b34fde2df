// Plot: a layout in, a picture of its S-curve out. The curve is stretched to the room there is; its lines and words are not.

import { chance, samples } from "./curve.js";
import { draw } from "./elements.js";
import { probability } from "./wording.js";

const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
// A mark nearer to an edge than this has its words on one side only.
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
  const all = samples(bands, rows, threshold);
  const point = (s) => `${(100 * s).toFixed(2)} ${(100 - 100 * chance(s, bands, rows)).toFixed(2)}`;
  const path = (places) => `M${places.map(point).join(" L")}`;
  const edge = (100 * threshold).toFixed(2);
  return draw(
    "svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", width: "100%", height: "100%", "aria-hidden": "true" },
    draw("path", { class: "false-positive", d: `${path(all.filter((s) => s <= threshold))} L${edge} 100 Z` }),
    draw("path", { class: "false-negative", d: `${path(all.filter((s) => s >= threshold))} L${edge} 0 Z` }),
    draw("path", { class: "curve", d: path(all) }),
  );
};

// The words stand above the picture, where nothing is in their way, and end with it.
const words = ({ threshold, recall }) => {
  const text = `threshold ${threshold}, recall ${probability(recall)}`;
  if (threshold > 1 - EDGE) return draw("text", { class: "strong end", x: "100%", y: "0%", dy: "-14" }, text);
  if (threshold < EDGE) return draw("text", { class: "strong", x: "0%", y: "0%", dy: "-14" }, text);
  return draw("text", { class: "strong middle", x: across(threshold), y: "0%", dy: "-14" }, text);
};

const marks = ({ threshold, recall }) => [
  draw("line", { class: "threshold", x1: across(threshold), x2: across(threshold), y1: "-2%", y2: "100%" }),
  draw("circle", { class: "promise", cx: across(threshold), cy: up(recall), r: "5" }),
];

// The picture in plain words, for those who do not see it.
const description = ({ threshold, recall, steepest, falsePositive, falseNegative }) =>
  `How likely two documents are compared, by their similarity. At the threshold ${threshold} it is ${probability(recall)}. ` +
  `The curve is steepest near ${steepest.toFixed(2)}. Area below the curve left of the threshold: ${probability(falsePositive)}. ` +
  `Area above the curve right of it: ${probability(falseNegative)}.`;

export const plot = (figures) =>
  draw(
    "svg",
    { class: "plot", role: "img", "aria-label": description(figures) },
    ...grid(),
    panel(figures),
    draw("line", { class: "axis", x1: "0%", x2: "0%", y1: "0%", y2: "100%" }),
    draw("line", { class: "axis", x1: "0%", x2: "100%", y1: "100%", y2: "100%" }),
    ...marks(figures),
    words(figures),
  );
