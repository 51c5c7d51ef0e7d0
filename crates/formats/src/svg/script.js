"use strict";
(() => {
  const root = document.documentElement;
  const margin = Number(root.dataset.margin);
  const characterWidth = Number(root.dataset.character);
  const everything = Math.max(1, Number(root.dataset.total));
  const room = root.viewBox.baseVal.width - 2 * margin;
  const details = document.getElementById("details");
  const matched = document.getElementById("matched");
  const reset = document.getElementById("reset");
  const heading = details.textContent;

  // Frames in document order are the tree in pre-order.
  const frames = Array.from(document.querySelectorAll(".frame"), (element) => ({
    element,
    rect: element.querySelector("rect"),
    text: element.querySelector("text"),
    tip: element.querySelector("title").textContent,
    name: element.dataset.name,
    start: Number(element.dataset.start),
    total: Number(element.dataset.total),
    depth: Number(element.dataset.depth),
    parent: -1,
  }));
  const path = [];
  frames.forEach((frame, index) => {
    path.length = frame.depth;
    frame.parent = frame.depth > 0 ? path[frame.depth - 1] : -1;
    path[frame.depth] = index;
  });
  const indexOf = new Map(frames.map((frame, index) => [frame.element, index]));
  let zoomed = 0;

  const fitted = (name, width) => {
    const characters = Math.floor((width - 6) / characterWidth);
    if (characters < 3) return "";
    const letters = Array.from(name);
    return letters.length <= characters ? name : letters.slice(0, characters - 2).join("") + "..";
  };

  const place = (frame, left, width) => {
    frame.element.style.display = "";
    frame.rect.setAttribute("x", left.toFixed(2));
    frame.rect.setAttribute("width", width.toFixed(2));
    frame.text.setAttribute("x", (left + 3).toFixed(2));
    frame.text.textContent = fitted(frame.name, width);
  };

  const zoom = (index) => {
    const focus = frames[index];
    const scale = room / Math.max(1, focus.total);
    const above = new Set();
    for (let up = focus.parent; up >= 0; up = frames[up].parent) above.add(up);
    let inside = false;
    frames.forEach((frame, position) => {
      if (position === index) inside = true;
      else if (position > index && frame.depth <= focus.depth) inside = false;
      frame.element.classList.toggle("above", above.has(position));
      if (above.has(position)) place(frame, margin, room);
      else if (inside) place(frame, margin + (frame.start - focus.start) * scale, frame.total * scale);
      else frame.element.style.display = "none";
    });
    zoomed = index;
    reset.setAttribute("visibility", index === 0 ? "hidden" : "visible");
  };

  const search = (pattern) => {
    let expression = null;
    try {
      expression = pattern ? new RegExp(pattern) : null;
    } catch (problem) {
      matched.textContent = String(problem.message);
      return;
    }
    // A match below a match is part of it already.
    let sum = 0;
    let coveredDepth = Infinity;
    for (const frame of frames) {
      if (frame.depth <= coveredDepth) coveredDepth = Infinity;
      const isMatch = expression !== null && frame.depth > 0 && expression.test(frame.name);
      frame.element.classList.toggle("match", isMatch);
      if (isMatch && coveredDepth === Infinity) {
        sum += frame.total;
        coveredDepth = frame.depth;
      }
    }
    const share = ((100 * sum) / everything).toFixed(2);
    matched.textContent = expression === null ? "" : `matched ${share}%`;
  };

  const ask = () => {
    const pattern = window.prompt("Regular expression to search function names for; empty clears", "");
    if (pattern !== null) search(pattern);
  };

  const isVisible = (index) => frames[index].element.style.display !== "none";

  // The nearest visible frame in a direction: parent, first child, or sibling.
  const neighbor = (index, key) => {
    const frame = frames[index];
    const isFlame = root.dataset.orientation === "flame";
    const toParent = isFlame ? "ArrowDown" : "ArrowUp";
    const toChild = isFlame ? "ArrowUp" : "ArrowDown";
    if (key === toParent) return frame.parent;
    if (key === toChild) {
      const below = index + 1;
      const hasChild = below < frames.length && frames[below].parent === index;
      return hasChild ? below : -1;
    }
    const step = key === "ArrowRight" ? 1 : -1;
    for (let other = index + step; other >= 0 && other < frames.length; other += step) {
      if (frames[other].depth < frame.depth) return -1;
      if (frames[other].depth === frame.depth && isVisible(other)) return other;
    }
    return -1;
  };

  const show = (target) => {
    const element = target.closest ? target.closest(".frame") : null;
    const index = element ? indexOf.get(element) : undefined;
    details.textContent = index === undefined ? heading : frames[index].tip.replace(/\n/g, " · ");
    return index;
  };

  root.addEventListener("mouseover", (event) => show(event.target));
  root.addEventListener("focusin", (event) => show(event.target));
  root.addEventListener("click", (event) => {
    if (event.target.id === "search") return ask();
    if (event.target.id === "reset") return zoom(0);
    const index = show(event.target);
    if (index !== undefined) zoom(index);
  });
  root.addEventListener("keydown", (event) => {
    const index = indexOf.get(event.target);
    const isButton = event.target.id === "search" || event.target.id === "reset";
    if (event.key === "Escape") {
      search("");
      zoom(0);
    } else if (event.key === "/") {
      event.preventDefault();
      ask();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (isButton) event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      else if (index !== undefined) zoom(index === zoomed ? 0 : index);
    } else if (event.key.startsWith("Arrow") && !isButton) {
      event.preventDefault();
      const next = index === undefined ? zoomed : neighbor(index, event.key);
      if (next >= 0) frames[next].element.focus();
    }
  });
})();
