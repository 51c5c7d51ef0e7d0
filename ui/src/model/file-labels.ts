// What a file is stored as: labels as people type them, and a service from its name.

/** `a=1 b=2`, also with commas; in the order in which they were typed. What is no pair goes along, for the server to refuse. */
export function labelParameters(text: string): (readonly ["label", string])[] {
  return text
    .split(/[\s,]+/)
    .filter((part) => part !== "")
    .map((part) => ["label", part] as const);
}

const EXTENSION = /\.(gz|zst|zip|pb|pprof|prof|out|json|txt|folded|collapsed|jfr|data|nettrace|speedscope|firefox|cpuprofile|heapprofile|callgrind|html|pftrace)$/i;

/** The name of a file without what tells its format: a start, which can be changed. */
export function serviceNameFor(fileName: string): string {
  const shorter = fileName.replace(EXTENSION, "");
  return shorter === fileName || shorter === "" ? fileName : serviceNameFor(shorter);
}
