// A picture as PNG: the SVG that the server draws, painted on a canvas of twice its size.

const SCALE = 2;
const MOST_PIXELS = 64_000_000;

async function painted(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const scale = Math.min(SCALE, Math.sqrt(MOST_PIXELS / (image.naturalWidth * image.naturalHeight)));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.naturalWidth * scale);
  canvas.height = Math.round(image.naturalHeight * scale);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

export function offerPictures() {
  for (const link of document.querySelectorAll("[data-png]")) {
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      const address = URL.createObjectURL(await painted(link.href));
      const name = new URL(link.href).pathname.split("/").filter(Boolean).pop().replace(/\.svg$/, "");
      const file = Object.assign(document.createElement("a"), { href: address, download: `${name}.png` });
      file.click();
      URL.revokeObjectURL(address);
    });
  }
}
