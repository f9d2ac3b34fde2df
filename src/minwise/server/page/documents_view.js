// View of the documents in the index, or of those whose texts contain a phrase, the newest first; each can be opened.

import { callApi, fetchDocument, indexInfo, latestOnly, publish, subscribe } from "./api.js";
import { button, byId, make, nameElement, setText, showError, visibleText } from "./elements.js";
import { formatCount, formatPlural, wellFormed } from "./formatting.js";
import { metadataLine, metadataWhole, scrollRegion, snippetElement } from "./passages.js";
import { removeButton } from "./remove_button.js";

const PAGE_SIZE = 20;
const listLoad = latestOnly();
const documentLoad = latestOnly();
let next = null;
let stale = true;
// The phrase that is searched for, null for all documents, and what was searched and found so far.
let phrase = null;
let searched = 0;
let found = 0;

const documentParts = (stored) => {
  const text =
    stored.text === null
      ? make("p", { class: "quiet" }, "The text of this document is not stored.")
      : scrollRegion(`The text of ${stored.id}`, make("p", { class: "whole", dir: "auto" }, visibleText(stored.text)));
  const count =
    stored.shingles === null ? null : make("p", { class: "quiet small" }, formatPlural(stored.shingles, "shingle"));
  return [text, metadataWhole(stored.metadata), count];
};

// The beginning of a text, or the part of it around a phrase.
const briefText = (snippet) =>
  typeof snippet === "string"
    ? make("p", { class: "snippet clipped", dir: "auto" }, visibleText(snippet))
    : snippetElement(snippet);

// Makes a list item of a document; `removed` is called after its removal.
const card = (listed, removed) => {
  const load = latestOnly();
  const trouble = make("p", { class: "trouble", role: "alert", hidden: true });
  const body = make("div", { class: "opened", hidden: true });
  const toggle = make("button", { type: "button", class: "toggle", "aria-expanded": "false" }, nameElement(listed.id));
  const beginning = listed.snippet ? briefText(listed.snippet) : null;
  const brief = [metadataLine(listed.metadata), beginning].filter((part) => part !== null);
  const item = make("li", { class: "card" }, make("div", { class: "head" }, make("h2", {}, toggle)), ...brief, body);

  const close = () => {
    load.drop();
    toggle.setAttribute("aria-expanded", "false");
    for (const part of brief) part.hidden = false;
    body.hidden = true;
    body.replaceChildren();
    toggle.focus();
  };
  const line = (use) =>
    make(
      "div",
      { class: "line" },
      use,
      removeButton(listed.id, () => removeItem(item, listed.id, removed)),
      button("Close", close),
    );
  const open = () => {
    toggle.setAttribute("aria-expanded", "true");
    for (const part of brief) part.hidden = true;
    body.hidden = false;
    body.replaceChildren(trouble);
    showError(trouble, null);
    return load(
      async (signal) => {
        const stored = await fetchDocument(listed.id, signal);
        const search = () => publish("search-for", { text: stored.text, name: null });
        const use = stored.text === null ? null : button("Find its near-duplicates", search);
        body.replaceChildren(...documentParts(stored).filter((part) => part !== null), line(use));
      },
      (error) => {
        showError(trouble, error);
        body.append(line(null));
      },
    );
  };
  toggle.addEventListener("click", () => (body.hidden ? open() : close()));
  item.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !body.hidden) close();
  });
  return { item, toggle, open };
};

// Removes a list item, and moves the focus to the next one or to the top.
const removeItem = (item, id, removed) => {
  const neighbour = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (neighbour?.querySelector(".toggle") ?? byId("documents-name")).focus();
  byId("documents-news").replaceChildren(nameElement(id), " was removed.");
  removed();
};

const showCount = () => {
  const kept = indexInfo.storesTexts ? "" : " Their texts are not stored, only their ids and metadata.";
  const some = `${formatPlural(indexInfo.documents, "document")}, the newest first.${kept}`;
  const text = indexInfo.documents ? some : "The index contains no documents yet.";
  setText(byId("documents-outcome"), indexInfo.known ? text : "");
  byId("by-text").hidden = !indexInfo.storesTexts;
  byId("no-text-search").hidden = indexInfo.storesTexts;
};

const appendCards = (documents) => {
  const cards = documents.map((listed) => card(listed, () => {}));
  byId("listed").append(...cards.map(({ item }) => item));
  return cards;
};

const listPage = async (before, signal) => {
  const parameters = new URLSearchParams({ limit: PAGE_SIZE, ...(before === null ? {} : { before }) });
  const answer = await callApi("GET", `/v1/documents?${parameters}`, undefined, signal);
  if (before === null) byId("listed").replaceChildren();
  const cards = appendCards(answer.documents);
  next = answer.next;
  return cards;
};

const describeSearch = (complete) => {
  const those = `${formatPlural(found, "document")} ${found === 1 ? "contains" : "contain"} “${visibleText(phrase)}”`;
  if (complete) return `${found ? those : those.replace("0 documents contain", "No document contains")}.`;
  return `${those}, ${formatCount(searched)} of ${formatPlural(indexInfo.documents, "document")} searched so far.`;
};

// Searches until a page is full. One response searches a part of a large index, so several may be needed.
const searchPage = async (before, signal) => {
  if (before === null) {
    byId("listed").replaceChildren();
    [searched, found, next] = [0, 0, null];
  }
  const cards = [];
  do {
    const at = before === null && searched === 0 ? {} : { before: next };
    const parameters = new URLSearchParams({ contains: phrase, limit: PAGE_SIZE - cards.length, ...at });
    const answer = await callApi("GET", `/v1/search?${parameters}`, undefined, signal);
    next = answer.next;
    [searched, found] = [searched + answer.searched, found + answer.documents.length];
    cards.push(...appendCards(answer.documents));
    setText(byId("search-outcome"), describeSearch(next === null));
  } while (next !== null && cards.length < PAGE_SIZE);
  return cards;
};

const load = (before) =>
  listLoad(
    async (signal) => {
      showError(byId("documents-trouble"), null);
      setText(byId("documents-news"), "");
      byId("all-documents").hidden = phrase === null;
      byId("more").hidden = true;
      byId("stop").hidden = phrase === null;
      const cards = await (phrase === null ? listPage : searchPage)(before, signal);
      byId("more").hidden = next === null;
      byId("stop").hidden = true;
      if (before !== null) cards[0]?.toggle.focus();
      stale = false;
    },
    (error) => {
      byId("stop").hidden = true;
      showError(byId("documents-trouble"), error);
    },
  );

const searchTexts = (event) => {
  event.preventDefault();
  phrase = wellFormed(byId("phrase").value);
  return load(null);
};

const listAll = () => {
  phrase = null;
  byId("phrase").value = "";
  setText(byId("search-outcome"), "");
  return load(null);
};

// Stops a search; it can be continued.
const stopSearch = () => {
  listLoad.drop();
  byId("stop").hidden = true;
  byId("more").hidden = next === null;
};

const openById = (event) => {
  event.preventDefault();
  showError(byId("documents-trouble"), null);
  return documentLoad(
    async (signal) => {
      const stored = await fetchDocument(byId("wanted").value, signal);
      const made = card({ ...stored, snippet: null }, () => (stale = true));
      byId("asked-for").replaceChildren(made.item);
      await made.open();
      made.toggle.focus();
    },
    (error) => {
      byId("asked-for").replaceChildren();
      showError(byId("documents-trouble"), error);
    },
  );
};

// Loads the documents when the view is shown.
export const showDocumentsView = () => {
  showCount();
  return stale ? load(null) : undefined;
};

export const startDocumentsView = () => {
  byId("by-id").addEventListener("submit", openById);
  byId("by-text").addEventListener("submit", searchTexts);
  byId("all-documents").addEventListener("click", listAll);
  byId("stop").addEventListener("click", stopSearch);
  byId("more").addEventListener("click", () => load(next));
  byId("refresh").addEventListener("click", () => load(null));
  subscribe("index-info", showCount);
  // Removed documents are already gone from the list; added ones are not in it yet.
  subscribe("documents-changed", () => (stale = true));
  subscribe("authorized", () => (stale = true));
};
