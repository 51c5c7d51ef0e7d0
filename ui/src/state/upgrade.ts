// Links live in runbooks and chat logs for years. Each version of the address has one upgrader to the next, and none is ever removed.

import { formatSelector } from "../model/selector.ts";

export const CURRENT_VERSION = 1;

type Upgrader = (parameters: URLSearchParams) => URLSearchParams;

/** `UPGRADERS[n]` turns a link of version n into one of version n + 1. */
const UPGRADERS: readonly Upgrader[] = [upgradeUnversioned];

/**
 * Version 0: links without `v`, written by hand or by scripts in the names of the API, and those in the habit of other profilers:
 * `service=checkout` for the selector, `until` for `to`.
 */
function upgradeUnversioned(parameters: URLSearchParams): URLSearchParams {
  const upgraded = new URLSearchParams(parameters);
  const service = upgraded.get("service");
  if (service !== null && !upgraded.has("query")) {
    upgraded.set("query", formatSelector([{ label: "service_name", operator: "=", value: service }]));
  }
  const until = upgraded.get("until");
  if (until !== null && !upgraded.has("to")) upgraded.set("to", until);
  upgraded.delete("service");
  upgraded.delete("until");
  upgraded.set("v", "1");
  return upgraded;
}

export interface UpgradedLink {
  parameters: URLSearchParams;
  /** The link was made by a newer page: what is known of it is used, and the reader is told. */
  isNewer: boolean;
}

export function upgradeLink(parameters: URLSearchParams): UpgradedLink {
  const version = linkVersion(parameters);
  if (version > CURRENT_VERSION) return { parameters, isNewer: true };
  const upgraded = UPGRADERS.slice(version).reduce((link, upgrade) => upgrade(link), parameters);
  return { parameters: upgraded, isNewer: false };
}

function linkVersion(parameters: URLSearchParams): number {
  const text = parameters.get("v");
  return text !== null && /^\d+$/.test(text) ? Number(text) : 0;
}
