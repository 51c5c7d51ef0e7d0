import { expect, it } from "vitest";
import { isLoopback } from "./loopback.ts";

it("knows this machine by its names", () => {
  for (const host of ["localhost", "demo.localhost", "127.0.0.1", "127.9.8.7", "[::1]"]) expect(isLoopback(host), host).toBe(true);
});

it("takes nothing else for it", () => {
  for (const host of ["", "example.com", "localhost.example.com", "127.0.0.1.nip.io", "127.0.0.999", "10.0.0.1", "[::2]", "0.0.0.0"])
    expect(isLoopback(host), host).toBe(false);
});
