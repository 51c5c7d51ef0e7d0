// The pictures on the screen as one PNG: the canvases of a pane, the words beside them, and a line that says what is shown.

const PICTURES = ".flame-stage > canvas:first-child";
/** What stands between pictures as elements: names of lanes, times, whose callers they are. */
const WORDS = ".chart-axis span, .lane-name, .side-flame-about, .sandwich-middle";
const TITLE_HEIGHT = 26;
const TITLE_SIZE = 12;

/** `undefined` where no picture is shown. */
export async function picturesAsPng(title: string): Promise<Blob | undefined> {
  const pictures = [...document.querySelectorAll<HTMLCanvasElement>(PICTURES)].filter(({ clientWidth, clientHeight }) => clientWidth > 0 && clientHeight > 0);
  const [first] = pictures;
  if (!first) return undefined;
  const scale = first.width / first.clientWidth;
  const words = [...document.querySelectorAll<HTMLElement>(WORDS)];
  const places = [...pictures, ...words].map((element) => ({ element, frame: shownPart(element) }));
  const left = Math.min(...places.map(({ frame }) => frame.left));
  const top = Math.min(...places.map(({ frame }) => frame.top));
  const canvas = document.createElement("canvas");
  canvas.width = (Math.max(...places.map(({ frame }) => frame.right)) - left) * scale;
  canvas.height = (Math.max(...places.map(({ frame }) => frame.bottom)) - top + TITLE_HEIGHT) * scale;
  const context = canvas.getContext("2d");
  if (!context) return undefined;
  const style = getComputedStyle(document.body);
  context.fillStyle = style.backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.textBaseline = "middle";
  context.fillStyle = style.color;
  context.font = `${TITLE_SIZE}px ${style.fontFamily}`;
  context.fillText(title, 6, TITLE_HEIGHT / 2);
  context.translate(-left, TITLE_HEIGHT - top);
  for (const { element, frame } of places) {
    if (frame.height <= 0) continue;
    if (element instanceof HTMLCanvasElement) context.drawImage(element, frame.left, frame.top, element.clientWidth, element.clientHeight);
    else drawWords(context, element, frame);
  }
  return (await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, "image/png"))) ?? undefined;
}

/** What is scrolled out of sight is no part of what is seen. */
function shownPart(element: HTMLElement): DOMRect {
  const own = element.getBoundingClientRect();
  const around = element.closest(".flame-scroller")?.getBoundingClientRect();
  if (!around || element instanceof HTMLCanvasElement) return own;
  const isShown = own.bottom > around.top && own.top < around.bottom;
  return isShown ? own : new DOMRect(around.left, around.top, 0, 0);
}

function drawWords(context: CanvasRenderingContext2D, element: HTMLElement, { left, top, width, height }: DOMRect): void {
  const style = getComputedStyle(element);
  context.fillStyle = style.color;
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const text = element.innerText.replaceAll(/\s+/g, " ").trim();
  const indent = Number.parseFloat(style.paddingLeft) || 0;
  context.fillText(text, left + indent, top + height / 2, Math.max(1, width - indent));
}
