// View of the index: size, settings, and limits of the server.

import { indexInfo, refreshIndexInfo, subscribe } from "./api.js";
import { byId, make, setText, showError, visibleText } from "./elements.js";
import { formatCount, formatPlural, formatSize, spacedName } from "./formatting.js";

const figure = (name, value, note) => {
  const more = note ? make("dd", { class: "quiet small" }, note) : null;
  return make("div", {}, make("dt", {}, name), make("dd", { class: "large" }, value), more);
};

const entry = (name, value) => make("div", {}, make("dt", {}, spacedName(name)), make("dd", {}, visibleText(value)));

const figures = ({ documents, removed, recent, bytes, segments, resident_bytes: resident }) => {
  return [
    figure("documents", formatCount(documents), `${formatCount(recent)} not in a segment yet`),
    figure("removed", formatCount(removed), "or replaced, since the index was created"),
    figure("on disk", formatSize(bytes), `${formatPlural(segments.length, "segment")} and the database`),
    figure("in memory", formatSize(resident), "for lookups"),
  ];
};

const setting = (value) => {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return value === null ? "–" : String(value);
};

const IN_BYTES = ["max_document", "max_request", "max_metadata", "max_compare"];

const limit = (name, value) => {
  if (IN_BYTES.includes(name)) return formatSize(value);
  return name.endsWith("timeout") ? `${formatCount(value)} s` : formatCount(value);
};

const writing = () => {
  if (indexInfo.mayWrite) return "Documents can be added and removed.";
  const subject = indexInfo.all.read_only ? "This server" : "Your token";
  return `${subject} is read-only: documents cannot be added or removed.`;
};

const show = () => {
  const { settings, limits } = indexInfo.all;
  byId("figures").replaceChildren(...figures(indexInfo.all));
  byId("settings").replaceChildren(...Object.entries(settings).map(([name, value]) => entry(name, setting(value))));
  byId("limits").replaceChildren(...Object.entries(limits).map(([name, value]) => entry(name, limit(name, value))));
  const text = indexInfo.storesTexts ? "Texts are stored." : "Texts are not stored.";
  setText(byId("index-outcome"), `${writing()} ${text}`);
};

const refresh = async () => {
  showError(byId("index-trouble"), null);
  try {
    await refreshIndexInfo();
  } catch (error) {
    showError(byId("index-trouble"), error);
  }
};

export const startIndexView = () => {
  byId("recount").addEventListener("click", refresh);
  subscribe("index-info", show);
};
