// What readers of other profilers complain about, each walked through on demo data. Called by crates/cli/tests/host/screens.rs:
//   node e2e/complaints.mjs URL [ONLY]
// The names begin with the numbers of the list that the window was designed against. Prints one JSON line: what was walked, and
// `problems`.
import { stillTimes, walkComplaints } from "./complaint.mjs";
import { complaintsAboutAnswers } from "./complaints-answers.mjs";
import { complaintsAboutPictures } from "./complaints-picture.mjs";

const [url, only] = process.argv.slice(2);
const times = await stillTimes(url);
const complaints = { ...complaintsAboutPictures(times), ...complaintsAboutAnswers(times) };
const numbered = Object.entries(complaints).toSorted(([left], [right]) => left.localeCompare(right, "en"));
process.stdout.write(`${JSON.stringify(await walkComplaints(url, Object.fromEntries(numbered), { only }))}\n`);
