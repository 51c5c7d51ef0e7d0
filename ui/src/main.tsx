import { render } from "preact";
import "./styles/index.css";
import { App } from "./views/app.tsx";
import { exposeToTests } from "./views/inspection.ts";
import { start } from "./views/store.ts";

const root = document.getElementById("app");
if (!root) throw new Error("index.html has no #app");
start();
exposeToTests();
render(<App />, root);
