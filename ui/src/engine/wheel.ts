// What a wheel does to the picture: with Control or Command it zooms where the pointer is, sideways or with Shift it pans, and all
// else scrolls the page.

import type { Camera } from "./camera.ts";
import type { Stage } from "./stage.ts";

const ZOOM_PER_PIXEL = 0.002;

/** Whether the camera was moved. */
export function moveByWheel(event: WheelEvent, camera: Camera, stage: Stage): boolean {
  const now = performance.now();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    camera.zoomAround((event.clientX - stage.origin.x) / stage.width, Math.exp(event.deltaY * ZOOM_PER_PIXEL), now);
    return true;
  }
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (sideways === 0 || camera.isWhole) return false;
  event.preventDefault();
  camera.panBy(sideways / stage.width, now);
  return true;
}
