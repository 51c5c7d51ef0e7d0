// Profile types for people: in groups, with the unit in words.

import { typeTitle, type ProfileType } from "./profile-type.ts";

export interface TypeGroup {
  title: string;
  types: ProfileType[];
}

const GROUPS: readonly (readonly [title: string, names: readonly string[]])[] = [
  ["Time", ["process_cpu", "wall", "off_cpu", "runq"]],
  ["Locks", ["mutex", "kernel_lock", "block"]],
  ["Memory", ["memory", "memory_growth", "page_faults"]],
  ["Input and output", ["block_io"]],
  ["Runtimes", ["goroutine", "goroutines", "exception", "exceptions"]],
];
const REST = "Others";

/** In the order in which one looks for them; groups without a type are left out. */
export function groupTypes(types: readonly ProfileType[]): TypeGroup[] {
  const titleOf = ({ name }: ProfileType): string => GROUPS.find(([, names]) => names.includes(name))?.[0] ?? REST;
  const titles = [...GROUPS.map(([title]) => title), REST];
  return titles
    .map((title) => ({ title, types: types.filter((type) => titleOf(type) === title) }))
    .filter((group) => group.types.length > 0);
}

/** Title and unit: `Memory in use, bytes`. A title that says what is counted needs no unit. */
export function typeLabel(type: ProfileType): string {
  const title = typeTitle(type);
  const unit = { nanoseconds: "time", bytes: "bytes", count: "count" }[type.sample_unit] ?? type.sample_unit;
  return unit === "" || title.toLowerCase().includes(unit) ? title : `${title}, ${unit}`;
}
