import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative, so that the page works below any path prefix of a reverse proxy.
  base: "./",
  build: {
    target: "es2023",
    // Inlined assets would need `data:` in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: {
    // The server lets pages write that call it by the name they have themselves: this one's.
    proxy: { "/api": { target: process.env.CANDELA_SERVER ?? "http://127.0.0.1:4040", changeOrigin: false } },
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    benchmark: { include: ["bench/**/*.bench.ts"] },
  },
});
