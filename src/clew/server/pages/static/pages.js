// Shared by several pages: reload a part of a page, copy a link, announce something to screen readers.

export async function fetchPage(address, signal) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin", signal });
  if (answer.status >= 500 || answer.status === 429) throw new Error(`${answer.status}`);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

export function replacePart(id, page) {
  const old = document.getElementById(id);
  const fresh = page.getElementById(id);
  if (!old || !fresh) return false;
  old.replaceWith(fresh);
  document.title = page.title;
  return true;
}

// A part of a page, from an address that returns only that part; null if the response is something else, such as
// the sign-in page.
export async function fetchPart(id, address) {
  return (await fetchPage(address)).getElementById(id);
}

const keyOf = (node) => node.id || `${node.dataset?.signal ?? ""}/${node.dataset?.step ?? ""}`;

// Update an old node to match a fresh one. Only differences are touched, so focus, scrolling, selection and folds stay.
export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const isSameThing = old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
  if (old.nodeType !== Node.ELEMENT_NODE || !isSameThing) { old.replaceWith(fresh); return; }
  for (const name of old.getAttributeNames()) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((child, index) => (before[index] ? morph(before[index], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
}

export function copyLinks(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const link = new URL(button.dataset.copy, location.href).href;
      const said = button.textContent;
      try {
        await navigator.clipboard.writeText(link);
        button.textContent = "Copied";
      } catch {
        window.prompt("Copy this link:", link);
      }
      setTimeout(() => { button.textContent = said; }, 1600);
    });
  }
}
