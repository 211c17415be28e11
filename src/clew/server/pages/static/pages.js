// What several pages share: loading a part of a page anew, copying a link, saying something to screen readers.

export async function fetchPage(address, signal) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin", signal });
  if (!answer.ok && answer.status >= 500) throw new Error(`${answer.status}`);
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

export function copyLinks(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const link = new URL(button.dataset.copy, location.href).href;
      const said = button.textContent;
      try {
        await navigator.clipboard.writeText(link);
        button.textContent = "Copied";
      } catch {
        window.prompt("The link:", link);
      }
      setTimeout(() => { button.textContent = said; }, 1600);
    });
  }
}
