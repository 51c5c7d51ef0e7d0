import { render } from "preact";
import { exposeToTests } from "../views/inspection.ts";
import { answerWith, start, view } from "../views/store.ts";
import { ComparisonApi } from "./comparison-api.ts";
import { OfflineApi } from "./offline-api.ts";
import { OfflineApp } from "./offline-app.tsx";
import { COMPARISON, ELEMENT_ID, readEmbedded } from "./profiles.ts";

const root = document.getElementById("app");
const element = document.getElementById(ELEMENT_ID);
if (!root || !element) throw new Error("the page was not filled with profiles");
const embedded = readEmbedded(element.textContent ?? "");
const isComparison = embedded.schema === COMPARISON;
answerWith(isComparison ? new ComparisonApi(embedded) : new OfflineApi(embedded));
// Times that do not move: nothing is to be looked at again.
const first = embedded.profiles[0]?.type.id ?? "";
view.value = { ...view.peek(), screen: "profile", type: first, from: "0", to: "1", live: false };
start();
exposeToTests();
render(<OfflineApp title={embedded.title} isComparison={isComparison} />, root);
