// Trees as the page gets them, so small that much is folded: what a demo has fits into any answer.
import { windowModule } from "./complaint.mjs";

const { FlameTree } = await windowModule("model/flame-tree.ts");

/** Lets no tree have more nodes than these, unless the page says how many it wants. The trees that came, the latest last. */
export async function foldedTrees(view, nodes) {
  const trees = [];
  await view.page.route("**/api/v1/flamegraph?*", async (route) => {
    const asked = route.request().url();
    // Who asks for all of them gets all.
    if (!asked.includes("format=columns") || asked.includes("max_nodes=")) return route.continue();
    try {
      const answer = await route.fetch({ url: `${asked}&max_nodes=${nodes}` });
      const body = await answer.body();
      trees.push(FlameTree.decode(new Uint8Array(body).buffer));
      return await route.fulfill({ body });
    } catch {
      // The page asks something else by now, and waits for this one no more.
      return route.abort().catch(() => undefined);
    }
  });
  return trees;
}

/** The node of a box of the picture. */
export function nodeOf(tree, { name, total }) {
  return tree.total.findIndex((value, node) => value === total && tree.nameOf(node) === name);
}

/** How many nodes a tree has below one of its own, and how much of their value nobody can tell. */
export function below(tree, node) {
  let folded = 0;
  for (let at = node + 1; at < tree.subtreeEnd[node]; at++) if (tree.frames.isOther(tree.frame[at])) folded += tree.total[at];
  return { nodes: tree.subtreeEnd[node] - node - 1, folded };
}

export function namesIn(tree) {
  return new Set(Array.from(tree.frame, (frame) => tree.frames.name(frame)));
}
