// A graph: move it, zoom, highlight connected boxes, find some, and hide what others come from. The server draws it.

import { offerPictures } from "./pictures.js";

const STEP = 60;
const CLOSEST = 2.5;
const READABLE = 0.8;
const MINIMAP_FROM = 100;
const SVG = "http://www.w3.org/2000/svg";

function drawnNode(name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

const placeOf = (box) => box.transform.baseVal.consolidate().matrix;

function extentOf(box) {
  const [{ e: x, f: y }, rect] = [placeOf(box), box.querySelector("rect")];
  return { x, y, width: Number(rect.getAttribute("width")), height: Number(rect.getAttribute("height")) };
}

function frame(svg) {
  const full = { width: Number(svg.dataset.width), height: Number(svg.dataset.height) };
  const view = { x: 0, y: 0, scale: 1 };
  const watchers = [];
  const size = () => svg.getBoundingClientRect();
  const least = () => Math.min(1, size().width / full.width, size().height / full.height) * 0.95;

  function draw() {
    const { width, height } = size();
    const room = { width: width / view.scale, height: height / view.scale };
    view.x = limited(view.x, full.width, room.width);
    view.y = limited(view.y, full.height, room.height);
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${room.width} ${room.height}`);
    for (const watch of watchers) watch({ x: view.x, y: view.y, ...room });
  }
  function limited(at, all, room) {
    return room >= all ? (all - room) / 2 : Math.min(Math.max(at, -40), all - room + 40);
  }
  function zoom(factor, at = null) {
    const { width, height, left, top } = size();
    const point = at ? { x: at.clientX - left, y: at.clientY - top } : { x: width / 2, y: height / 2 };
    const scale = Math.min(CLOSEST, Math.max(least(), view.scale * factor));
    view.x += point.x / view.scale - point.x / scale;
    view.y += point.y / view.scale - point.y / scale;
    view.scale = scale;
    draw();
  }
  function move(right, down) {
    view.x += right / view.scale;
    view.y += down / view.scale;
    draw();
  }
  function all() {
    view.scale = least();
    draw();
  }
  function begin() {
    view.scale = Math.max(least(), Math.min(1, size().width / full.width));
    if (view.scale < 0.55) view.scale = READABLE;
    const here = svg.querySelector(".here") ?? svg.querySelector(".run") ?? svg.querySelector(".g-box");
    const place = placeOf(here);
    const { width, height } = size();
    view.x = place.e - (width / view.scale) * 0.7;
    view.y = place.f - height / view.scale / 2;
    draw();
  }
  function lookAt(x, y) {
    const { width, height } = size();
    view.x = x - width / view.scale / 2;
    view.y = y - height / view.scale / 2;
    draw();
  }
  // All of some boxes if they are readable then, else the first of them.
  function show(boxes) {
    const found = boxes.map(extentOf);
    if (!found.length) return;
    const { width, height } = size();
    const [left, top] = [Math.min(...found.map((each) => each.x)), Math.min(...found.map((each) => each.y))];
    const right = Math.max(...found.map((each) => each.x + each.width));
    const bottom = Math.max(...found.map((each) => each.y + each.height));
    const fits = Math.min(width / (right - left + 80), height / (bottom - top + 80));
    view.scale = Math.min(1.4, Math.max(fits, READABLE));
    const at = fits >= READABLE ? { x: (left + right) / 2, y: (top + bottom) / 2 } : { x: found[0].x + found[0].width / 2, y: found[0].y };
    lookAt(at.x, at.y);
  }
  return { zoom, move, all, begin, draw, lookAt, show, watch: (watcher) => watchers.push(watcher) };
}

// From a hundred boxes on: the whole graph, small, with a frame around what is in sight.
function addMinimap(picture, svg, shown) {
  const boxes = [...svg.querySelectorAll(".g-box")];
  const small = picture.querySelector("[data-minimap]");
  if (boxes.length < MINIMAP_FROM) return;
  for (const box of boxes) {
    const { x, y, width, height } = extentOf(box);
    const copy = drawnNode("g", { class: box.getAttribute("class").replace("dim", ""), "data-copy-of": box.dataset.box });
    copy.append(drawnNode("rect", { x, y, width, height }));
    small.append(copy);
  }
  const inSight = drawnNode("rect", { class: "in-sight" });
  small.append(inSight);
  small.removeAttribute("hidden");
  shown.watch(({ x, y, width, height }) => {
    for (const [key, value] of Object.entries({ x, y, width, height })) inSight.setAttribute(key, value);
  });
  const look = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(small.getScreenCTM().inverse());
    shown.lookAt(place.x, place.y);
  };
  small.addEventListener("pointerdown", (event) => {
    event.stopPropagation();
    small.setPointerCapture(event.pointerId);
    look(event);
  });
  small.addEventListener("pointermove", (event) => { if (event.buttons) look(event); });
}

// A handle on each box that comes from others hides what only it comes from, and shows it again.
function addHandles(picture, svg) {
  const lines = [...svg.querySelectorAll(".g-line")];
  const boxes = new Map([...svg.querySelectorAll(".g-box")].map((box) => [box.dataset.box, box]));
  const [before, after] = [new Map(), new Map()];
  for (const { dataset: { from, to } } of lines) {
    before.set(to, [...(before.get(to) ?? []), from]);
    after.set(from, [...(after.get(from) ?? []), to]);
  }
  const folded = new Set();
  // Walk from the boxes that nothing comes from; a folded box leads no further.
  function inSight() {
    const found = new Set([...boxes.keys()].filter((number) => !after.has(number)));
    for (const box of boxes.values()) if (box.classList.contains("here")) found.add(box.dataset.box);
    const waiting = [...found];
    while (waiting.length) {
      const number = waiting.pop();
      if (folded.has(number)) continue;
      for (const each of before.get(number) ?? []) {
        if (!found.has(each)) {
          found.add(each);
          waiting.push(each);
        }
      }
    }
    return found;
  }
  function draw() {
    const found = folded.size ? inSight() : new Set(boxes.keys());
    for (const [number, box] of boxes) box.classList.toggle("away", !found.has(number));
    for (const copy of picture.querySelectorAll("[data-copy-of]")) copy.classList.toggle("away", !found.has(copy.dataset.copyOf));
    for (const line of lines) {
      const { from, to } = line.dataset;
      line.classList.toggle("away", !found.has(from) || !found.has(to) || folded.has(to));
    }
  }
  for (const [number, box] of boxes) {
    if (!before.has(number)) continue;
    const name = box.querySelector("title").textContent.trim().split("\n")[0];
    const { height } = extentOf(box);
    const handle = drawnNode("g", { class: "g-handle", role: "button", tabindex: "0", "aria-expanded": "true", "aria-label": `What ${name} comes from`, transform: `translate(0 ${height / 2})` });
    const sign = drawnNode("path", { d: "M-4 0H4" });
    handle.append(drawnNode("circle", { r: 12, class: "target" }), drawnNode("circle", { r: 7 }), sign);
    const turn = () => {
      if (!folded.delete(number)) folded.add(number);
      handle.setAttribute("aria-expanded", String(!folded.has(number)));
      sign.setAttribute("d", folded.has(number) ? "M-4 0H4M0 -4V4" : "M-4 0H4");
      draw();
    };
    handle.addEventListener("click", turn);
    handle.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      turn();
    });
    box.append(handle);
  }
}

function belonging(svg, number) {
  const lines = [...svg.querySelectorAll(".g-line")];
  const found = new Set([number]);
  for (const [from, to] of [["from", "to"], ["to", "from"]]) {
    const waiting = [number];
    while (waiting.length) {
      const at = waiting.pop();
      for (const line of lines) {
        if (line.dataset[from] === at && !found.has(line.dataset[to])) {
          found.add(line.dataset[to]);
          waiting.push(line.dataset[to]);
        }
      }
    }
  }
  return found;
}

function highlight(svg, chosen) {
  for (const box of svg.querySelectorAll(".g-box")) box.classList.toggle("dim", chosen !== null && !chosen.has(box.dataset.box));
  for (const line of svg.querySelectorAll(".g-line")) {
    const lit = chosen !== null && chosen.has(line.dataset.from) && chosen.has(line.dataset.to);
    line.classList.toggle("lit", lit);
    line.classList.toggle("dim", chosen !== null && !lit);
  }
}

for (const picture of document.querySelectorAll("[data-graph]")) {
  const svg = picture.querySelector("svg:not([data-minimap])");
  const shown = frame(svg);
  addMinimap(picture, svg, shown);
  addHandles(picture, svg);
  shown.begin();
  new ResizeObserver(() => shown.draw()).observe(picture);

  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    shown.zoom(event.deltaY < 0 ? 1.12 : 1 / 1.12, event);
  }, { passive: false });

  let dragged = null;
  svg.addEventListener("pointerdown", (event) => { dragged = { x: event.clientX, y: event.clientY, far: false }; });
  svg.addEventListener("pointermove", (event) => {
    if (!dragged || event.buttons === 0) return;
    shown.move(dragged.x - event.clientX, dragged.y - event.clientY);
    dragged = { x: event.clientX, y: event.clientY, far: dragged.far || Math.hypot(event.movementX, event.movementY) > 1 };
  });
  svg.addEventListener("click", (event) => {
    if (dragged?.far) event.preventDefault();
    dragged = null;
  });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
    if (moves[event.key]) shown.move(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") shown.zoom(1.2);
    else if (event.key === "-") shown.zoom(1 / 1.2);
    else if (event.key === "0") shown.all();
    else return;
    event.preventDefault();
  });
  for (const button of picture.querySelectorAll("[data-zoom]")) {
    const act = { in: () => shown.zoom(1.25), out: () => shown.zoom(0.8), all: () => shown.all() };
    button.addEventListener("click", act[button.dataset.zoom]);
  }

  const search = document.querySelector("[data-highlight]");
  const searched = () => {
    const words = search.value.trim().toLowerCase();
    if (!words) return null;
    return new Set([...svg.querySelectorAll(".g-box")].filter((box) => box.dataset.text.includes(words)).map((box) => box.dataset.box));
  };
  const told = document.querySelector("[data-found]");
  let turn = 0;
  function find(next) {
    const chosen = searched();
    highlight(svg, chosen);
    const boxes = chosen ? [...svg.querySelectorAll(".g-box:not(.away)")].filter((box) => chosen.has(box.dataset.box)) : [];
    turn = next && boxes.length ? (turn + 1) % boxes.length : 0;
    told.textContent = chosen ? (boxes.length ? `${next ? `${turn + 1} of ` : ""}${boxes.length} found` : "none found") : "";
    shown.show(next ? boxes.slice(turn, turn + 1) : boxes);
  }
  search.addEventListener("input", () => find(false));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !searched()) return;
    event.preventDefault();
    find(true);
  });
  search.form.addEventListener("submit", (event) => { if (event.submitter === null) event.preventDefault(); });
  for (const box of svg.querySelectorAll(".g-box")) {
    for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, () => { if (!searched()) highlight(svg, belonging(svg, box.dataset.box)); });
    for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, () => highlight(svg, searched()));
  }
}

offerPictures();
