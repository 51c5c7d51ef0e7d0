// Files as a person drops them on the page: they come over it first, which it shows, and then land.
import { readFileSync } from "node:fs";
import { basename } from "node:path";

/** Holds files over the page. What it gives lets them fall. */
export async function carry(page, paths) {
  const files = paths.map((path) => ({ name: basename(path), bytes: [...readFileSync(path)] }));
  const transfer = await page.evaluateHandle((list) => {
    const data = new DataTransfer();
    for (const { name, bytes } of list) data.items.add(new File([new Uint8Array(bytes)], name));
    return data;
  }, files);
  const overlay = page.getByTestId("file-drop");
  await page.dispatchEvent("body", "dragenter", { dataTransfer: transfer });
  await overlay.waitFor();
  return async () => {
    await page.dispatchEvent("body", "dragover", { dataTransfer: transfer });
    await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
    await overlay.waitFor({ state: "detached" });
  };
}
