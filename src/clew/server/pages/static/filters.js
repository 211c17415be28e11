// Filters: a mark beside each value and each column, and help while a condition is typed. The server writes and checks
// all conditions; this only puts them together and shows them.

import { fetchPage } from "./pages.js";

const PAUSE_MS = 250;
const GAP = 4;

function made(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function place(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const below = at.bottom + GAP + height <= innerHeight || at.top < height;
  menu.style.left = `${Math.max(GAP, Math.min(at.left, innerWidth - width - GAP))}px`;
  menu.style.top = `${Math.max(GAP, below ? Math.min(at.bottom + GAP, innerHeight - height - GAP) : at.top - height - GAP)}px`;
}

// One menu at a time. It closes on Escape and on a click elsewhere, and the focus returns to where it was.
function openMenu(root, anchor, label, content, back) {
  const menu = made("div", { popover: "auto", class: "menu", role: "group", "aria-label": label }, ...content);
  root.append(menu);
  menu.showPopover();
  place(menu, anchor);
  menu.querySelector("a, input:not([type=hidden])")?.focus({ preventScroll: true });
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    const had = menu.contains(document.activeElement) || document.activeElement === document.body;
    menu.remove();
    if (had) back?.focus({ preventScroll: true });
  });
  return menu;
}

function leadOn(menu, show) {
  menu.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    show(link.href, { focus: "where" });
  });
}

function rowsWhere(condition) {
  const address = new URL(location.href);
  for (const name of ["after", "offset", "trail"]) address.searchParams.delete(name);
  address.searchParams.set("where", condition);
  return address.href;
}

function choices(cell, table) {
  const head = table.tHead.rows[0].cells[cell.cellIndex];
  const [column, value] = [head.dataset.column, cell.querySelector("[data-is]").dataset.is];
  const without = value === "NULL" ? `${column} IS NOT NULL` : `(${column} <> ${value} OR ${column} IS NULL)`;
  const found = [["Only these", value === "NULL" ? `${column} IS NULL` : `${column} = ${value}`], ["Not these", without]];
  if ("ordered" in head.dataset && value !== "NULL") {
    found.push(["Greater", `${column} > ${value}`], ["Less", `${column} < ${value}`]);
  }
  return found;
}

function filterBy(root, cell, table, show) {
  const items = choices(cell, table).map(([name, condition]) => made(
    "li", {}, made("a", { href: rowsWhere(table.dataset.narrowing + condition) }, made("b", {}, name), made("code", {}, condition)),
  ));
  const menu = openMenu(root, cell, "Filter by this value", [made("ul", {}, ...items)], cell.querySelector("a"));
  leadOn(menu, show);
}

// One mark, which moves to the cell that is pointed at or has the focus.
function addMark(root, table, show) {
  const mark = made("button", { type: "button", class: "narrow-by", "aria-label": "Filter by this value", title: "Filter by this value (f)", tabindex: "-1" });
  const cellOf = (event) => event.target.closest?.("td:has(> [data-is])");
  const move = (event) => {
    const cell = cellOf(event);
    const head = cell && table.tHead.rows[0].cells[cell.cellIndex];
    if (cell && head.dataset.column && mark.parentElement !== cell) cell.append(mark);
  };
  table.addEventListener("pointerover", move);
  table.addEventListener("focusin", move);
  mark.addEventListener("click", () => filterBy(root, mark.parentElement, table, show));
  table.addEventListener("keydown", (event) => {
    const cell = cellOf(event);
    if (event.key !== "f" || !cell || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!table.tHead.rows[0].cells[cell.cellIndex].dataset.column) return;
    event.preventDefault();
    filterBy(root, cell, table, show);
  });
}

function addColumnMenus(root, table, show) {
  for (const link of table.querySelectorAll("a.values-of")) {
    link.addEventListener("click", async (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      link.setAttribute("aria-busy", "true");
      try {
        const found = (await fetchPage(link.href)).getElementById("values");
        if (!found) throw new Error("another page");
        leadOn(openMenu(root, link, link.getAttribute("aria-label"), [found], link), show);
      } catch {
        location.assign(link.href);
      } finally {
        link.removeAttribute("aria-busy");
      }
    });
  }
}

// While a condition is typed: what is wrong with it, and what can stand at the cursor.
class Help {
  constructor(field) {
    this.field = field;
    this.list = made("ul", { class: "menu completions", popover: "manual", role: "listbox", id: "where-offers", "aria-label": "What can stand here" });
    this.told = made("p", { class: "while-typing", role: "status" });
    this.start = 0;
    this.asked = 0;
    for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", this.list.id], ["aria-autocomplete", "list"]]) {
      field.setAttribute(name, value);
    }
    field.form.after(this.told);
    field.form.append(this.list);
    let waiting = 0;
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.ask(), PAUSE_MS);
    });
    field.addEventListener("keydown", (event) => this.key(event));
    field.addEventListener("blur", () => this.close());
    this.list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      const option = event.target.closest("[role=option]");
      if (option) this.take(option);
    });
  }

  async ask() {
    const { field } = this;
    const number = ++this.asked;
    const address = new URL(field.dataset.check, location.href);
    address.searchParams.set("where", field.value);
    address.searchParams.set("cursor", field.selectionStart);
    try {
      const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "application/json" } });
      const { problem, completions } = await answer.json();
      if (number !== this.asked || !field.isConnected) return;
      // A word that can be completed is not wrong yet.
      this.tell(completions.found.length ? null : problem);
      this.offer(completions);
    } catch { /* The condition is checked again when it is sent. */ }
  }

  tell(problem) {
    this.told.textContent = problem ? [problem.message, problem.hint].filter(Boolean).join(": ") : "";
    this.field.setAttribute("aria-invalid", problem ? "true" : "false");
  }

  offer({ start, found }) {
    this.close();
    if (!found.length || document.activeElement !== this.field) return;
    this.start = start;
    this.list.replaceChildren(...found.map(({ text, about }, index) => made(
      "li", { role: "option", id: `where-offer-${index}`, "data-text": text, "aria-selected": "false" }, made("code", {}, text), made("span", { class: "quiet" }, about),
    )));
    this.list.showPopover();
    place(this.list, this.field);
    this.field.setAttribute("aria-expanded", "true");
  }

  close() {
    if (this.list.matches(":popover-open")) this.list.hidePopover();
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  take(option) {
    const end = this.field.selectionStart;
    this.field.setRangeText(option.dataset.text, this.start, end, "end");
    this.close();
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  key(event) {
    if (!this.list.matches(":popover-open")) return;
    const options = [...this.list.children];
    const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      options[at]?.setAttribute("aria-selected", "false");
      const next = options[(at + step + options.length + (at < 0 && step < 0 ? 1 : 0)) % options.length];
      next.setAttribute("aria-selected", "true");
      next.scrollIntoView({ block: "nearest" });
      this.field.setAttribute("aria-activedescendant", next.id);
    } else if (event.key === "Escape") this.close();
    else if (event.key === "Tab" && !event.shiftKey) this.take(options[Math.max(at, 0)]);
    else if (event.key === "Enter" && at >= 0) this.take(options[at]);
    else return;
    event.preventDefault();
  }
}

export function addFilters(root, show) {
  for (const table of root.querySelectorAll("table[data-narrowing]")) {
    addMark(root, table, show);
    addColumnMenus(root, table, show);
  }
  for (const field of root.querySelectorAll("input[data-check]")) new Help(field);
}
