// The page of one file that `candela record -o profile.html` fills with profiles: script and style stand in it.

import { defineConfig, type Plugin } from "vite";

/** Puts what the page refers to into the page. */
function inlined(): Plugin {
  return {
    name: "candela-inlined",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const script = files.find((file) => file.type === "chunk");
      const style = files.find((file) => file.type === "asset" && file.fileName.endsWith(".css"));
      const page = files.find((file) => file.type === "asset" && file.fileName.endsWith(".html"));
      if (script?.type !== "chunk" || style?.type !== "asset" || page?.type !== "asset")
        throw new Error("the page is not one script, one style and one document");
      // A text of the script must not end its element. Replacing functions, because `$&` in a script means itself.
      const code = script.code.replaceAll("</script", "<\\/script");
      page.source = String(page.source)
        .replace(/<script type="module"[^>]*><\/script>/, () => `<script type="module">${code}</script>`)
        .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${String(style.source)}</style>`);
      if (/<(script|link)[^>]* (src|href)=/.test(page.source)) throw new Error("the page still refers to files");
      delete bundle[script.fileName];
      delete bundle[style.fileName];
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [inlined()],
  build: {
    target: "es2023",
    // The window is there already.
    emptyOutDir: false,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: { input: "offline.html" },
  },
});
