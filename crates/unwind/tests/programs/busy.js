// Burns CPU in interpreted, compiled and built-in code.
console.log("ready");
function fibonacci(n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
for (;;) {
  fibonacci(18);
  const words = [];
  for (let i = 0; i < 2000; i++) words.push("w" + ((i * 7919) % 1009));
  words.sort((a, b) => (a < b ? -1 : 1));
  JSON.parse(JSON.stringify(words.map((word) => ({ word, length: word.length }))));
  /(\d+)-(\w+)/.exec("x".repeat(1000) + "12-ab");
}
