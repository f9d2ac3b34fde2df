// Adding: the text that is asked about becomes a document, and the page says what became of it.

import { complain, find, named, say } from "./elements.js";
import { facts } from "./facts.js";
import { askedName, askedText } from "./finding.js";
import { ask, hear, ServiceError, tell } from "./service.js";
import { cut, wellFormed } from "./wording.js";

const FATES = {
  added: () => ["Added as ", "."],
  replaced: () => ["Added as ", " in place of the old text."],
  unchanged: () => ["Nothing to do: the same text is there already, as ", "."],
  skipped: () => ["Not added: the old text keeps the id ", "."],
  conflict: () => ["Not added: another text has the id ", "."],
};

const tellFate = (result) => {
  find("added").classList.toggle("refused", ["duplicate", "skipped", "conflict"].includes(result.fate));
  if (result.fate === "duplicate") {
    const words = `Not added: it is ${cut(result.similarity)} similar to `;
    find("added").replaceChildren(words, named(result.duplicate_of), ", which is there already.");
    return;
  }
  const [before, after] = FATES[result.fate]();
  find("added").replaceChildren(before, named(result.id), after);
};

// The metadata as it was typed, once it is known to be an object: parsing would round long numbers.
const typedMetadata = () => {
  const typed = find("new-metadata").value.trim();
  if (typed === "") return "null";
  let parsed = null;
  try {
    parsed = JSON.parse(typed);
  } catch {
    parsed = null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    find("new-metadata").focus();
    throw new ServiceError(0, "metadata", 'Metadata must be a JSON object, such as {"source": "wire"}.');
  }
  return typed;
};

const add = async (event) => {
  event.preventDefault();
  say(find("added"), "");
  complain(find("add-trouble"), null);
  try {
    const text = askedText();
    if (text.trim() === "") throw new ServiceError(0, "text", "There is no text to add yet: paste one first.");
    const words = new URLSearchParams({ unique: find("unique").checked, on_duplicate_id: find("id-taken").value });
    const id = wellFormed(find("new-id").value);
    const body = `{"id":${JSON.stringify(id)},"text":${JSON.stringify(text)},"metadata":${typedMetadata()}}`;
    const answer = await ask("POST", `/v1/documents?${words}`, body);
    tellFate(answer.results[0]);
    tell("changed");
  } catch (error) {
    complain(find("add-trouble"), error);
  }
};

export const startAdding = () => {
  find("add-form").addEventListener("submit", add);
  // A file's name is as good an id as any, until something else is typed.
  find("adding").addEventListener("toggle", () => {
    const { value, maxLength } = find("new-id");
    // No half of a character is left where a long one is cut.
    const name = askedName()?.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
    if (value === "" && name !== undefined) find("new-id").value = name;
  });
  find("adding").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !find("adding").open) return;
    find("adding").open = false;
    find("adding").querySelector("summary").focus();
  });
  // What became of another text is of no interest any more.
  hear("asked", () => {
    say(find("added"), "");
    complain(find("add-trouble"), null);
  });
  hear("facts", () => (find("adding").hidden = !facts.mayWrite));
};
