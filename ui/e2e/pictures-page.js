// Runs in a page of the browser, which decodes pictures: comparing two, and reducing one to a palette. For goldens.mjs.

globalThis.pictures = { compare, reduce };

/** How many pixels of a million differ by more than `shades`, and a picture of which. */
async function compare(expected, actual, shades) {
  const [left, right] = [await pixelsOf(expected), await pixelsOf(actual)];
  if (left.width !== right.width || left.height !== right.height)
    return { perMillion: 1e6, reason: `${right.width}×${right.height} instead of ${left.width}×${left.height}` };
  let count = 0;
  const marks = new ImageData(left.width, left.height);
  for (let at = 0; at < left.data.length; at += 4) {
    const isOff = [0, 1, 2].some((channel) => Math.abs(left.data[at + channel] - right.data[at + channel]) > shades);
    if (isOff) count++;
    const gray = 255 - (255 - right.data[at + 1]) / 4;
    marks.data.set(isOff ? [220, 0, 0, 255] : [gray, gray, gray, 255], at);
  }
  const canvas = new OffscreenCanvas(left.width, left.height);
  canvas.getContext("2d").putImageData(marks, 0, 0);
  return { perMillion: (1e6 * count) / (left.width * left.height), marks: await base64Of(await canvas.convertToBlob()) };
}

/** The 256 most common colours, and for each pixel the nearest of them. */
async function reduce(picture) {
  const { width, height, data } = await pixelsOf(picture);
  const pixels = new Uint32Array(data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const byCount = [...counts].toSorted(([, left], [, right]) => right - left);
  const palette = byCount.slice(0, 256).map(([color]) => channelsOf(color));
  const indices = new Map(byCount.map(([color], place) => [color, place < 256 ? place : nearest(palette, channelsOf(color))]));
  const bytes = Uint8Array.from(pixels, (pixel) => indices.get(pixel));
  return { width, height, palette: palette.flat(), indices: await base64Of(new Blob([bytes])) };
}

function nearest(palette, color) {
  const distances = palette.map((other) => other.reduce((sum, value, channel) => sum + (value - color[channel]) ** 2, 0));
  return distances.indexOf(Math.min(...distances));
}

function channelsOf(color) {
  return [color & 255, (color >> 8) & 255, (color >> 16) & 255];
}

async function pixelsOf(source) {
  const image = await createImageBitmap(await (await fetch(source)).blob());
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, image.width, image.height);
}

function base64Of(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.split(",")[1]));
    reader.readAsDataURL(blob);
  });
}
