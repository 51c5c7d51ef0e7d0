// What stands in the way of readers with a page as it is: axe, in both themes.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** WCAG 2.2 up to AA, and what axe calls good practice. */
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What is found, each with its theme and the element that it is on, and how many rules were applied. The page keeps its theme. */
export async function barriersOf(page) {
  const found = [];
  let rules = 0;
  // The content policy of the page refuses a script element; what the debugger evaluates it does not see.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
  for (const colorScheme of isDark ? ["light", "dark"] : ["dark", "light"]) {
    // A colour on its way to another is nobody's to read.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { violations, passes } = await page.evaluate(
      (tags) => window.axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] }),
      TAGS,
    );
    rules += passes.length;
    for (const { id, help, nodes } of violations) {
      const places = nodes.slice(0, 3).map(({ target, failureSummary }) => `${target.join(" ")}: ${failureSummary}`);
      found.push(`${colorScheme}: ${id}: ${help}: ${places.join(" | ")}`);
    }
  }
  return { found, rules };
}
