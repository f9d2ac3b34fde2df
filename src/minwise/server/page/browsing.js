// Browsing: what is in the index, the newest first; each document opens in its place.

import { button, complain, find, make, named, say, visible } from "./elements.js";
import { facts } from "./facts.js";
import { metadataLine, metadataWhole, scrolling } from "./passages.js";
import { removal } from "./removing.js";
import { ask, fetchDocument, hear, latest, tell } from "./service.js";
import { plural } from "./wording.js";

const PAGE = 20;
const list = latest();
const wanted = latest();
let next = null;
let stale = true;

const whole = (stored) => {
  const text =
    stored.text === null
      ? make("p", { class: "quiet" }, "The text of this document is not stored.")
      : scrolling(`The text of ${stored.id}`, make("p", { class: "whole", dir: "auto" }, visible(stored.text)));
  const count = stored.shingles === null ? null : make("p", { class: "quiet small" }, plural(stored.shingles, "shingle"));
  return [text, metadataWhole(stored.metadata), count];
};

// A document in a list; `removed` is called when it is gone.
const card = (listed, removed) => {
  const load = latest();
  const trouble = make("p", { class: "trouble", role: "alert", hidden: true });
  const body = make("div", { class: "opened", hidden: true });
  const toggle = make("button", { type: "button", class: "toggle", "aria-expanded": "false" }, named(listed.id));
  const beginning = listed.snippet ? make("p", { class: "snippet clipped", dir: "auto" }, visible(listed.snippet)) : null;
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
    make("div", { class: "line" }, use, removal(listed.id, () => gone(item, listed.id, removed)), button("Close", close));
  const open = () => {
    toggle.setAttribute("aria-expanded", "true");
    for (const part of brief) part.hidden = true;
    body.hidden = false;
    body.replaceChildren(trouble);
    complain(trouble, null);
    return load(
      async (signal) => {
        const stored = await fetchDocument(listed.id, signal);
        const look = () => tell("looked-for", { text: stored.text, name: null });
        const use = stored.text === null ? null : button("Look for its near-duplicates", look);
        body.replaceChildren(...whole(stored).filter((part) => part !== null), line(use));
      },
      (error) => {
        complain(trouble, error);
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

// Whoever removed a document stands on the next one, or at the top.
const gone = (item, id, removed) => {
  const beside = item.nextElementSibling ?? item.previousElementSibling;
  item.remove();
  (beside?.querySelector(".toggle") ?? find("documents-name")).focus();
  find("documents-news").replaceChildren(named(id), " was removed.");
  removed();
};

const count = () => {
  const kept = facts.storesTexts ? "" : " Their texts are not stored: of each there is its id and what was stored with it.";
  const many = facts.documents ? `${plural(facts.documents, "document")}, the newest first.` : "No document is in the index yet.";
  say(find("documents-outcome"), facts.known ? `${many}${facts.documents ? kept : ""}` : "");
};

const load = (before) =>
  list(
    async (signal) => {
      complain(find("documents-trouble"), null);
      say(find("documents-news"), "");
      const words = new URLSearchParams({ limit: PAGE, ...(before === null ? {} : { before }) });
      const answer = await ask("GET", `/v1/documents?${words}`, undefined, signal);
      const cards = answer.documents.map((one) => card(one, () => {}));
      if (before === null) find("listed").replaceChildren();
      find("listed").append(...cards.map((one) => one.item));
      next = answer.next;
      find("more").hidden = next === null;
      if (before !== null) cards[0]?.toggle.focus();
      stale = false;
    },
    (error) => complain(find("documents-trouble"), error),
  );

const openById = (event) => {
  event.preventDefault();
  complain(find("documents-trouble"), null);
  return wanted(
    async (signal) => {
      const stored = await fetchDocument(find("wanted").value, signal);
      const made = card({ ...stored, snippet: null }, () => (stale = true));
      find("asked-for").replaceChildren(made.item);
      await made.open();
      made.toggle.focus();
    },
    (error) => {
      find("asked-for").replaceChildren();
      complain(find("documents-trouble"), error);
    },
  );
};

// Documents are asked for when somebody looks at them.
export const browse = () => {
  count();
  return stale ? load(null) : undefined;
};

export const startBrowsing = () => {
  find("by-id").addEventListener("submit", openById);
  find("more").addEventListener("click", () => load(next));
  find("refresh").addEventListener("click", () => load(null));
  hear("facts", count);
  // What was removed here is gone from the list already; what was added elsewhere is not in it yet.
  hear("changed", () => (stale = true));
  hear("let-in", () => (stale = true));
};
