// Whether an address is that of the machine on which the page is looked at.

/** `hostname` as `location` has it: IPv6 in brackets. Another machine behind a forwarded port looks like this one. */
export function isLoopback(hostname: string): boolean {
  if (hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]") return true;
  const found = /^127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(hostname);
  return found !== null && found.slice(1).every((part) => Number(part) <= 255);
}
