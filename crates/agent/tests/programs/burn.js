// Burns CPU in compiled JavaScript and in the runtime's own C++ (JSON, regular expressions).
"use strict";

function burnScript(rounds) {
  let state = 1;
  for (let round = 0; round < rounds; round++) state = (state * 1103515245 + 12345) & 0x7fffffff;
  return state;
}

function burnRuntime(document) {
  return JSON.stringify(JSON.parse(document)).length;
}

const end = 1e6 * Number(process.argv[2]);
const document = JSON.stringify(Array.from({ length: 500 }, (_, index) => ({ index, name: "n" + index })));
let sum = 0;
while (process.cpuUsage().user < end) sum += burnScript(200000) + burnRuntime(document);
console.log(sum & 1);
