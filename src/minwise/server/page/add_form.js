// Form that adds the query text to the index and shows the result.

import { callApi, indexInfo, publish, ServiceError, subscribe } from "./api.js";
import { byId, nameElement, setText, showError } from "./elements.js";
import { formatFloor, wellFormed } from "./formatting.js";
import { queryName, queryText } from "./search_view.js";

const RESULT_TEXTS = {
  added: () => ["Added as ", "."],
  replaced: () => ["Added as ", " in place of the old text."],
  unchanged: () => ["Nothing to do: the same text is already stored as ", "."],
  skipped: () => ["Not added: the old text keeps the id ", "."],
  conflict: () => ["Not added: another text has the id ", "."],
};

const showResult = (result) => {
  byId("added").classList.toggle("refused", ["duplicate", "skipped", "conflict"].includes(result.fate));
  if (result.fate === "duplicate") {
    const text = `Not added: it is ${formatFloor(result.similarity)} similar to `;
    byId("added").replaceChildren(text, nameElement(result.duplicate_of), ", which is already stored.");
    return;
  }
  const [before, after] = RESULT_TEXTS[result.fate]();
  byId("added").replaceChildren(before, nameElement(result.id), after);
};

// Returns the metadata as typed, after checking that it is an object: parsing would round long numbers.
const typedMetadata = () => {
  const typed = byId("new-metadata").value.trim();
  if (typed === "") return "null";
  let parsed = null;
  try {
    parsed = JSON.parse(typed);
  } catch {
    parsed = null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    byId("new-metadata").focus();
    throw new ServiceError(0, "metadata", 'Metadata must be a JSON object, such as {"source": "wire"}.');
  }
  return typed;
};

const add = async (event) => {
  event.preventDefault();
  setText(byId("added"), "");
  showError(byId("add-trouble"), null);
  try {
    const text = queryText();
    if (text.trim() === "") throw new ServiceError(0, "text", "There is no text to add: paste one first.");
    const parameters = new URLSearchParams({ unique: byId("unique").checked, on_duplicate_id: byId("id-taken").value });
    const id = wellFormed(byId("new-id").value);
    const body = `{"id":${JSON.stringify(id)},"text":${JSON.stringify(text)},"metadata":${typedMetadata()}}`;
    const answer = await callApi("POST", `/v1/documents?${parameters}`, body);
    showResult(answer.results[0]);
    publish("documents-changed");
  } catch (error) {
    showError(byId("add-trouble"), error);
  }
};

export const startAddForm = () => {
  byId("add-form").addEventListener("submit", add);
  // The name of a file is the default id.
  byId("adding").addEventListener("toggle", () => {
    const { value, maxLength } = byId("new-id");
    // A surrogate pair must not be split where a long name is cut.
    const name = queryName()?.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
    if (value === "" && name !== undefined) byId("new-id").value = name;
  });
  byId("adding").addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !byId("adding").open) return;
    byId("adding").open = false;
    byId("adding").querySelector("summary").focus();
  });
  // The result of another text is obsolete.
  subscribe("text-changed", () => {
    setText(byId("added"), "");
    showError(byId("add-trouble"), null);
  });
  subscribe("index-info", () => (byId("adding").hidden = !indexInfo.mayWrite));
};
