// A graph: move it, zoom, and highlight connected boxes. The server draws the picture.

const STEP = 60;
const CLOSEST = 2.5;

function frame(svg) {
  const full = { width: Number(svg.dataset.width), height: Number(svg.dataset.height) };
  const view = { x: 0, y: 0, scale: 1 };
  const size = () => svg.getBoundingClientRect();
  const least = () => Math.min(1, size().width / full.width, size().height / full.height) * 0.95;

  function draw() {
    const { width, height } = size();
    const room = { width: width / view.scale, height: height / view.scale };
    view.x = limited(view.x, full.width, room.width);
    view.y = limited(view.y, full.height, room.height);
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${room.width} ${room.height}`);
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
    if (view.scale < 0.55) view.scale = 0.8;
    const here = svg.querySelector(".here") ?? svg.querySelector(".run") ?? svg.querySelector(".g-box");
    const place = here.transform.baseVal.consolidate().matrix;
    const { width, height } = size();
    view.x = place.e - (width / view.scale) * 0.7;
    view.y = place.f - height / view.scale / 2;
    draw();
  }
  return { zoom, move, all, begin, draw };
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
  const svg = picture.querySelector("svg");
  const shown = frame(svg);
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
  search.addEventListener("input", () => highlight(svg, searched()));
  search.form.addEventListener("submit", (event) => { if (event.submitter === null) event.preventDefault(); });
  for (const box of svg.querySelectorAll(".g-box")) {
    for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, () => { if (!searched()) highlight(svg, belonging(svg, box.dataset.box)); });
    for (const name of ["pointerleave", "focusout"]) box.addEventListener(name, () => highlight(svg, searched()));
  }
}
