"use strict";

// --- layers
for (const block of document.querySelectorAll(".searchable")) {
  const rows = Array.from(block.querySelectorAll("tbody tr"));
  const label = document.createElement("label");
  const field = document.createElement("input");
  const told = document.createElement("output");
  label.textContent = "Search the layers";
  field.type = "search";
  field.autocomplete = "off";
  field.spellcheck = false;
  field.placeholder = "name, class, dtype, code …";
  told.setAttribute("aria-live", "polite");
  label.append(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = words.every((word) => text.includes(word));
      row.hidden = !fits;
      found += fits ? 1 : 0;
    }
    told.textContent = words.length ? found + " of " + rows.length : "";
  });
  const search = document.createElement("search");
  search.className = "search";
  search.append(label, told);
  block.prepend(search);
}

// --- many findings, by severity and rule
for (const block of document.querySelectorAll(".filterable")) {
  const findings = Array.from(block.querySelectorAll(".finding"));
  const told = document.createElement("output");
  told.setAttribute("aria-live", "polite");
  const choices = [["Severity", "severity"], ["Rule", "rule"]].map(([title, about]) => {
    const choice = document.createElement("select");
    const label = document.createElement("label");
    const numbers = new Map();
    for (const finding of findings) {
      const value = finding.dataset[about];
      numbers.set(value, (numbers.get(value) || 0) + 1);
    }
    choice.add(new Option("all", ""));
    const order = ["error", "warning", "info"];
    const values = Array.from(numbers.keys()).sort();
    values.sort((one, other) => order.indexOf(one) - order.indexOf(other));
    for (const value of values) choice.add(new Option(value + " (" + numbers.get(value) + ")", value));
    label.append(title, choice);
    choice.addEventListener("change", show);
    return { about, choice, label };
  });
  function show() {
    const chosen = choices.filter(({ choice }) => choice.value);
    for (const finding of findings) {
      finding.hidden = !chosen.every(({ about, choice }) => finding.dataset[about] === choice.value);
    }
    for (const group of block.querySelectorAll(".group")) {
      group.hidden = !group.querySelector(".finding:not([hidden])");
    }
    const shown = findings.filter((finding) => !finding.hidden).length;
    told.textContent = chosen.length ? shown + " of " + findings.length : "";
  }
  // a link may lead to what is not shown
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    const aim = link && document.getElementById(link.hash.slice(1));
    if (aim && aim.hidden && block.contains(aim)) {
      for (const { choice } of choices) choice.value = "";
      show();
    }
  });
  const search = document.createElement("search");
  search.className = "search";
  search.setAttribute("aria-label", "Findings by severity and rule");
  search.append(...choices.map(({ label }) => label), told);
  block.prepend(search);
}

// --- copying
const heard = document.createElement("p");
heard.className = "heard";
heard.setAttribute("role", "status");
document.body.append(heard);

// A page that was opened as a file may have no clipboard: then what is selected is copied, as by the keyboard.
async function copied(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // it may be forbidden: the other way is left
    }
  }
  const field = document.createElement("textarea");
  field.className = "heard";
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function copyButton(label, text, otherwise) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = label;
  button.addEventListener("click", async () => {
    const done = await copied(text);
    button.focus();
    button.textContent = done ? "Copied" : label;
    heard.textContent = done ? "Copied" : "";
    if (done) setTimeout(() => (button.textContent = label), 3000);
    else otherwise();
  });
  return button;
}

for (const finding of document.querySelectorAll(".finding")) {
  const text = finding.dataset.markdown;
  const button = copyButton("Copy as Markdown", text, () => {
    const field = finding.querySelector(".by-hand") || document.createElement("textarea");
    field.className = "by-hand";
    field.readOnly = true;
    field.value = text;
    field.setAttribute("aria-label", "Markdown, to be copied by hand");
    button.after(field);
    field.select();
  });
  button.setAttribute("aria-describedby", finding.getAttribute("aria-labelledby"));
  finding.append(button);
}
for (const block of document.querySelectorAll(".mended")) {
  const lines = block.querySelector("pre");
  if (lines) block.append(copyButton("Copy", lines.textContent, () => getSelection().selectAllChildren(lines)));
}
