// Statistics: how much there is of what, with which settings, within which limits.

import { complain, find, make, say, visible } from "./elements.js";
import { facts, refreshFacts } from "./facts.js";
import { hear } from "./service.js";
import { amount, plural, size, spoken } from "./wording.js";

const figure = (name, value, words) => {
  const more = words ? make("dd", { class: "quiet small" }, words) : null;
  return make("div", {}, make("dt", {}, name), make("dd", { class: "large" }, value), more);
};

const fact = (name, value) => make("div", {}, make("dt", {}, spoken(name)), make("dd", {}, visible(value)));

const figures = ({ documents, removed, recent, bytes, segments, resident_bytes: resident }) => {
  const files = Array.isArray(segments) ? segments.length : segments;
  return [
    figure("documents", amount(documents), recent === undefined ? null : `${amount(recent)} of them recent, not in a segment yet`),
    figure("removed", amount(removed), "or replaced, since the index was made"),
    figure("on disk", size(bytes), files === undefined ? null : `${plural(files, "segment")} and the database`),
    resident === undefined ? null : figure("in memory", size(resident), "what is needed to look up"),
  ].filter((one) => one !== null);
};

const setting = (value) => (typeof value === "boolean" ? (value ? "yes" : "no") : value === null ? "–" : String(value));

const IN_BYTES = ["max_document", "max_request", "max_metadata", "max_compare"];

const limit = (name, value) => {
  if (IN_BYTES.includes(name)) return size(value);
  return name.endsWith("timeout") ? `${amount(value)} s` : amount(value);
};

const writing = () => {
  if (facts.mayWrite) return "Documents can be added and removed.";
  return `${facts.all.read_only ? "This server" : "Your token"} only reads: nothing can be added or removed.`;
};

const show = () => {
  const { settings, limits } = facts.all;
  find("figures").replaceChildren(...figures(facts.all));
  find("settings").replaceChildren(...Object.entries(settings).map(([name, value]) => fact(name, setting(value))));
  find("limits").replaceChildren(...Object.entries(limits).map(([name, value]) => fact(name, limit(name, value))));
  const text = facts.storesTexts ? "Texts are stored." : "Texts are not stored.";
  say(find("index-outcome"), `${writing()} ${text}`);
};

export const recount = async () => {
  complain(find("index-trouble"), null);
  try {
    await refreshFacts();
  } catch (error) {
    complain(find("index-trouble"), error);
  }
};

export const startStatistics = () => {
  find("recount").addEventListener("click", recount);
  hear("facts", show);
};
