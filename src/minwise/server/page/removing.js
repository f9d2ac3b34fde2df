// Removing: a button that asks once more, in its place, before it removes a document.

import { button, complain, make } from "./elements.js";
import { facts } from "./facts.js";
import { removeDocument, tell } from "./service.js";

// `removed` is called when the document is gone.
export const removal = (id, removed) => {
  if (!facts.mayWrite) return null;
  const place = make("span", { class: "removal" });
  const trouble = make("span", { class: "trouble", role: "alert", hidden: true });

  const remove = async () => {
    try {
      await removeDocument(id);
    } catch (error) {
      offer();
      complain(trouble, error);
      place.firstElementChild.focus();
      return;
    }
    removed();
    tell("changed");
  };

  const doubt = () => {
    const no = button("No, keep it", keep);
    place.replaceChildren("Remove it for good? ", button("Yes, remove it", remove, { class: "grave" }), " ", no);
    no.focus();
  };

  const offer = () => place.replaceChildren(button("Remove", doubt), trouble);

  const keep = () => {
    offer();
    place.firstElementChild.focus();
  };

  place.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || place.contains(trouble)) return;
    event.stopPropagation();
    keep();
  });
  offer();
  return place;
};
