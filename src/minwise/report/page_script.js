"use strict";
// Ticked documents become a list of ids that `minwise restore` takes. Nothing leaves the page but by a click.
(() => {
  const find = (id) => document.getElementById(id);
  const bar = find("ticked");
  const boxes = [...document.querySelectorAll("input[data-id]")];
  const ticked = () => boxes.filter((box) => box.checked);

  // One id per line. An id that a line could not hold as it is, or that would be read as something else, is a JSON
  // string instead, in plain ASCII: some readers take U+0085 or U+2028 for the end of a line.
  const breaks = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]|^"|^[\s\ufeff]|[\s\ufeff]$|^$/u;
  const ascii = (text) =>
    text.replace(/[\u007f-\uffff]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
  const line = (id) => (breaks.test(id) ? ascii(JSON.stringify(id)) : id) + "\n";
  const list = () => [...new Set(ticked().map((box) => JSON.parse(box.dataset.id)))].map(line).join("");

  // A page that lies in its output directory knows what to call it; with drive letters, shells do not agree how to quote.
  const folder = location.protocol === "file:" ? decodeURIComponent(location.pathname).replace(/\/[^/]*$/, "") : "";
  const quoted = /^[\w@%+=:,./-]+$/.test(folder) ? folder : "'" + folder.replaceAll("'", "'\\''") + "'";
  if (folder && !/^\/[A-Za-z]:/.test(folder)) find("command").textContent = find("command").textContent.replace("OUT", () => quoted);

  const show = () => {
    const count = ticked().length;
    bar.hidden = count === 0;
    find("ticked-count").textContent = count === 1 ? "1 document to keep" : count.toLocaleString("en") + " documents to keep";
    for (const box of boxes) box.closest("li").classList.toggle("to-keep", box.checked);
  };

  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([list()], { type: "text/plain;charset=utf-8" }));
    link.download = "keep-ids.txt";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const say = (button, words) => {
    const before = button.dataset.words || (button.dataset.words = button.textContent);
    button.textContent = words;
    setTimeout(() => (button.textContent = before), 1500);
  };

  // Where a page opened from a disk may not use the clipboard, the command is selected instead.
  const copy = async () => {
    const command = find("command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      say(find("copy"), "copied");
    } catch {
      getSelection().selectAllChildren(command);
      say(find("copy"), document.execCommand("copy") ? "copied" : "selected");
    }
  };

  const clear = () => {
    for (const box of ticked()) box.checked = false;
    show();
    find("clusters-name").focus();
  };

  document.documentElement.classList.add("live");
  for (const box of boxes) box.addEventListener("change", show);
  find("download").addEventListener("click", download);
  find("copy").addEventListener("click", copy);
  find("clear").addEventListener("click", clear);
  addEventListener("pageshow", show);
})();
