// What the server has folded into `other` to keep its answer small, brought onto the screen for whoever wants to go there.

import { effect, signal, untracked } from "@preact/signals";
import type { FlameTree } from "../model/flame-tree.ts";
import { announce } from "./notice.ts";
import { flame, hasServer, loadAllNodes, question } from "./store.ts";

interface Wish {
  /** What was asked when it was wished: whoever asks something else wants something else. */
  question: string;
  act: (tree: FlameTree) => void;
}

const wish = signal<Wish | undefined>(undefined);

/** Asks for every node of what is looked at; `act` gets the tree with them, unless that fails. `why` is told meanwhile. */
export function withAllNodes(why: string, act: (tree: FlameTree) => void): void {
  if (!hasServer) return announce("This page holds no more: what is small was folded when it was written");
  announce(why);
  // Before the wish, which takes the next answer: the one on the screen is the folded one.
  loadAllNodes();
  wish.value = { question: question.peek(), act };
}

effect(() => {
  const wanted = wish.value;
  const { data, error, loading, isStale } = flame.value;
  if (!wanted || loading) return;
  wish.value = undefined;
  if (data && !error && !isStale && wanted.question === question.peek()) untracked(() => wanted.act(data));
});
