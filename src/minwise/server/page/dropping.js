// Dropping: a file or a text that is dropped anywhere on the page is looked for.

import { find } from "./elements.js";
import { lookFor, readFile } from "./finding.js";

const carries = (event) => ["Files", "text/plain"].some((kind) => event.dataTransfer?.types.includes(kind));

// A text that is dropped into a field belongs there. Not everything that can be the target has a `closest`.
const inField = (event) => (event.target.closest?.("input, textarea") ?? null) !== null;

const belongs = (event) => !event.dataTransfer.types.includes("Files") && inField(event);

export const startDropping = () => {
  const over = (event) => {
    if (!carries(event) || belongs(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    find("dropping").hidden = false;
  };
  // The next element is entered before the last is left: only who leaves what was entered last leaves the page. Not all
  // browsers tell by relatedTarget where a drag goes.
  let inside = null;
  const enter = (event) => {
    inside = event.target;
    over(event);
  };
  const leave = (event) => {
    if (event.target === inside) find("dropping").hidden = true;
  };
  const drop = async (event) => {
    find("dropping").hidden = true;
    if (!carries(event) || belongs(event)) return;
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    const text = event.dataTransfer.getData("text/plain");
    location.hash = "#find";
    await (file ? readFile(file) : lookFor(text));
    find("text").focus();
  };
  document.addEventListener("dragenter", enter);
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", leave);
  document.addEventListener("drop", drop);
};
