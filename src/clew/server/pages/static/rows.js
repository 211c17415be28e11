// Rows and row history: a slider over the steps, arrow keys in tables, links that load in place.

import { addFilters } from "./filters.js";
import { copyLinks, fetchPage, replacePart } from "./pages.js";

const PART = "content";
let loading = null;

async function show(address, { remember = true, focus = null, top = false } = {}) {
  loading?.abort();
  loading = new AbortController();
  document.getElementById(PART).setAttribute("aria-busy", "true");
  try {
    const page = await fetchPage(address, loading.signal);
    const across = document.querySelector(".scroll table[data-grid]")?.closest(".scroll").scrollLeft ?? 0;
    if (!replacePart(PART, page)) { location.assign(address); return; }
    if (remember) history.pushState(null, "", address);
    enhance();
    const region = document.querySelector(".scroll table[data-grid]")?.closest(".scroll");
    if (region && across && !region.querySelector("td.changed")) region.scrollLeft = across;
    if (top) region?.scrollIntoView({ block: "start" });
    // A link that is gone, such as "Next page" on the last page, leaves the focus to the rows.
    if (focus) (document.getElementById(focus) ?? region)?.focus({ preventScroll: top });
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
}

function addressOf(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value !== "") fields.append(name, value);
  return `${form.getAttribute("action").split("?")[0]}?${fields}`;
}

function addSlider(form) {
  const select = form.querySelector("select");
  const slider = document.createElement("input");
  slider.type = "range";
  slider.id = "at-slider";
  slider.min = 0;
  slider.max = select.options.length - 1;
  slider.value = select.selectedIndex;
  slider.setAttribute("aria-label", "Step");
  const told = () => slider.setAttribute("aria-valuetext", select.options[slider.value].text);
  told();
  let waiting = 0;
  slider.addEventListener("input", () => {
    select.selectedIndex = Number(slider.value);
    told();
    clearTimeout(waiting);
    waiting = setTimeout(() => show(addressOf(form), { focus: slider.id }), 120);
  });
  select.addEventListener("change", () => show(addressOf(form), { focus: select.id }));
  form.querySelector("button").replaceWith(steps(form, select));
  select.after(slider);
}

function steps(form, select) {
  const arrows = document.createElement("span");
  arrows.className = "arrows";
  for (const [text, by, name] of [["←", -1, "Previous step"], ["→", 1, "Next step"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.id = by < 0 ? "step-before" : "step-after";
    button.textContent = text;
    button.setAttribute("aria-label", name);
    button.disabled = !select.options[select.selectedIndex + by];
    button.addEventListener("click", () => {
      select.selectedIndex += by;
      show(addressOf(form), { focus: button.id });
    });
    arrows.append(button);
  }
  return arrows;
}

// One tab stop per row; the arrow keys move from cell to cell.
function moveByArrows(table) {
  table.addEventListener("keydown", (event) => {
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const cell = event.target.closest("td, th");
    if (!moves[event.key] || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    const [down, right] = moves[event.key];
    const row = table.rows[cell.parentElement.rowIndex + down];
    const target = row?.cells[cell.cellIndex + right]?.querySelector("a");
    if (!target) return;
    event.preventDefault();
    target.focus();
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

// A step often changes a column that is scrolled out of view.
function showChanges(table) {
  const region = table.closest(".scroll");
  const cell = table.querySelector("td.changed");
  if (!cell || cell.offsetLeft + cell.offsetWidth <= region.clientWidth) return;
  region.scrollLeft = cell.offsetLeft + cell.offsetWidth - region.clientWidth + 24;
}

function enhance() {
  const root = document.getElementById(PART);
  root.querySelectorAll("form[data-stepper]").forEach(addSlider);
  root.querySelectorAll("table[data-grid]").forEach((table) => {
    moveByArrows(table);
    showChanges(table);
  });
  copyLinks(root);
  addFilters(root, show);
  for (const link of root.querySelectorAll("thead a:not(.values-of), .pages a, .history .when a")) {
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      show(link.href, { focus: link.id || null, top: Boolean(link.closest(".pages")) });
    });
  }
  for (const form of root.querySelectorAll("form[role=search]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      show(addressOf(form), { focus: document.activeElement?.id || null });
    });
  }
}

window.addEventListener("popstate", () => show(location.href, { remember: false }));
enhance();
