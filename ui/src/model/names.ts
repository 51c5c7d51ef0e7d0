// What a symbol name says about where it belongs. The names come demangled; each language writes paths in its own way.

const NATIVE_SEPARATOR = "::";

/**
 * The part of a name a reader would call the package: Go import path, Rust crate, C++ namespace, otherwise directory of the file
 * or the binary. Used for colour, so it is stable for one function rather than exact.
 */
export function packageOf(name: string, file: string, mapping: string, kind: string): string {
  if (kind === "kernel") return "kernel";
  if (kind === "go") return goPackage(name);
  // `<alloc::vec::Vec<T> as Drop>::drop` belongs to the type, which stands inside the brackets.
  const implementation = /^<(?:&|\*|mut |const |dyn )*([A-Za-z_]\w*)::/.exec(name);
  if (implementation) return implementation[1];
  const plain = withoutTypeParameters(name);
  const separator = plain.indexOf(NATIVE_SEPARATOR);
  if (separator > 0) return plain.slice(0, separator);
  if (kind === "jvm" && plain.includes(".")) return plain.split(".").slice(0, -2).join(".");
  if (file !== "") return directoryOf(file);
  return baseName(mapping);
}

/**
 * What `pkg:` means, in a filter of the server as in a search: what is before the last separator of a name, in the notation of Go
 * (`net/http.(*Server).Serve`), of C++ and Rust (`std::io::read`), or of Java (`java.util.List.add`, where the class is part of it).
 */
export function packagePathOf(name: string): string {
  const implementation = /^<(?:[<&*]|mut |const |dyn )*([^<> [(]*)/.exec(name);
  const plain = implementation ? implementation[1] : name.split(/[(<[]/, 1)[0];
  const separator = plain.lastIndexOf(NATIVE_SEPARATOR);
  if (separator !== -1) return plain.slice(0, separator);
  const slash = plain.lastIndexOf("/");
  if (slash === -1) return plain.slice(0, Math.max(0, plain.replace(/\.+$/, "").lastIndexOf(".")));
  // The path of Go may have full stops; what follows it begins at the first one behind it.
  const stop = plain.indexOf(".", slash);
  return stop === -1 ? plain : plain.slice(0, stop);
}

/** `encoding/json` of `encoding/json.(*Decoder).Decode`: up to the first full stop behind the last slash. */
function goPackage(name: string): string {
  const slash = name.lastIndexOf("/", name.indexOf("(") === -1 ? name.length : name.indexOf("("));
  const stop = name.indexOf(".", slash + 1);
  return stop === -1 ? name : name.slice(0, stop);
}

/** The last two parts of a path without type parameters and arguments: `Decoder::next` of `<json::Decoder<R> as Iterator>::next(…)`. */
export function shortNameOf(name: string): string {
  if (name.includes(NATIVE_SEPARATOR)) return shortNativeName(name);
  const slash = name.lastIndexOf("/");
  // A slash inside a Go name ends the import path; a name that only is a path (a script, a binary) keeps its last part.
  return slash > 0 && slash < name.length - 1 ? name.slice(slash + 1) : name;
}

function shortNativeName(name: string): string {
  const implementation = /^<(.+) as .+>::(.+)$/.exec(name);
  const path = implementation ? `${implementation[1]}::${implementation[2]}` : name;
  const parts = withoutArguments(withoutTypeParameters(path))
    .split(NATIVE_SEPARATOR)
    .filter((part) => part !== "");
  return parts.slice(-2).join(NATIVE_SEPARATOR) || name;
}

function withoutArguments(name: string): string {
  // `(anonymous namespace)` and `operator()` are names, not argument lists.
  const argumentsStart = name
    .replace("(anonymous namespace)", "\u0000".repeat(21))
    .replace("operator()", "\u0000".repeat(10))
    .indexOf("(");
  return argumentsStart > 0 ? name.slice(0, argumentsStart) : name;
}

/** Drops `<…>` with nesting, but keeps the arrows and comparisons of `operator->`, `operator<` and the like. */
function withoutTypeParameters(name: string): string {
  if (!name.includes("<") || name.includes("operator")) return name;
  let depth = 0;
  let kept = "";
  for (let index = 0; index < name.length; index++) {
    const character = name[index];
    if (character === "<") depth++;
    else if (character === ">" && name[index - 1] !== "-") depth = Math.max(0, depth - 1);
    else if (depth === 0) kept += character;
  }
  return kept === "" ? name : kept;
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function directoryOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash > 0 ? path.slice(0, slash) : path;
}
