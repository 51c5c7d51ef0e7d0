import { describe, expect, it } from "vitest";
import { FILTER_PRESETS } from "./filter-presets.ts";
import { filterParameters, parseFilters, withFilters } from "./filters.ts";

function patternsOf(name: string): { field: string; pattern: RegExp }[] {
  const preset = FILTER_PRESETS.find((candidate) => candidate.name === name);
  return (preset?.filters ?? []).map(([, text]) => {
    const colon = text.indexOf(":");
    return { field: text.slice(0, colon), pattern: new RegExp(text.slice(colon + 1)) };
  });
}

function matches(name: string, frame: { fn?: string; bin?: string; kind?: string }): boolean {
  return patternsOf(name).some(({ field, pattern }) => pattern.test(frame[field as keyof typeof frame] ?? "\u0000"));
}

describe("my code only", () => {
  it.each([
    { fn: "std::thread::Builder::spawn" },
    { fn: "<alloc::boxed::Box<F> as core::ops::FnOnce>::call_once" },
    { fn: "runtime.mallocgc" },
    { fn: "java.util.concurrent.ThreadPoolExecutor.runWorker" },
    { fn: "_PyEval_EvalFrameDefault" },
    { fn: "memcpy", bin: "/usr/lib/x86_64-linux-gnu/libc.so.6" },
    { fn: "__x64_sys_read", kind: "kernel" },
    // As recorded of programs of each language.
    { fn: "<&dyn core::ops::function::Fn<(), Output = i32> + core::marker::Sync as core::ops::function::FnOnce<()>>::call_once" },
    { fn: "mio::sys::unix::selector::Selector::select" },
    { fn: "internal/runtime/syscall/linux.EpollWait" },
    { fn: "net/http.(*conn).serve" },
    { fn: "net/http.(*Server).Serve.gowrap3" },
    { fn: "void java.lang.Thread.run()" },
    { fn: "py::Condition.wait:/usr/lib/python3.13/threading.py" },
    { fn: "pymalloc_alloc", bin: "/usr/lib/libpython3.13.so.1.0" },
    { fn: "JavaThread::thread_main_inner()", bin: "/usr/lib/jvm/java-17/lib/server/libjvm.so" },
    { fn: "JS:^processTimers node:internal/timers:504:25" },
    { fn: "node::Start(int, char**)", bin: "/usr/bin/node" },
  ])("hides $fn", (frame) => expect(matches("My code only", frame)).toBe(true));

  it.each([
    { fn: "checkout::cart::total", bin: "/usr/bin/checkout", kind: "native" },
    { fn: "main.handleOrder", bin: "/usr/bin/shop" },
    { fn: "com.example.Shop.order" },
    { fn: "standard_price", bin: "/opt/libcart.so" },
    { fn: "io.netty.channel.nio.NioEventLoop.run" },
    { fn: "log.shop.Order.write" },
    { fn: "JS:* /srv/shop/order.js:2:100" },
    { fn: "py::read_from_database:/srv/shop/orders.py" },
    { fn: "0x7fdc5cecdf25" },
  ])("keeps $fn", (frame) => expect(matches("My code only", frame)).toBe(false));
});

describe("without idle runtimes", () => {
  it.each([
    "runtime.findRunnable",
    "runtime.sysmon",
    "tokio::runtime::scheduler::multi_thread::worker::Context::park_internal",
    "<tokio::runtime::io::driver::Driver>::turn",
    "java.util.concurrent.ForkJoinPool.awaitWork",
    "java.util.concurrent.ThreadPoolExecutor.getTask",
    "GangWorker::loop()",
    "uv__io_poll",
    "_queue_SimpleQueue_get",
    "py::EpollSelector.select:/usr/lib/python3.13/selectors.py",
  ])("leaves out %s", (fn) => expect(matches("Without idle runtimes", { fn })).toBe(true));

  // What every task of a pool runs below, and what programs wait for, must stay.
  it.each([
    "shop.readFromDatabase",
    "runtime.lock2",
    "runtime.futexsleep",
    "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
    "tokio::runtime::task::core::Core<shop::park::Lot>::poll",
    "java.util.concurrent.ForkJoinPool.runWorker",
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "java.util.concurrent.locks.LockSupport.park",
    "py::_worker:/usr/lib/python3.13/concurrent/futures/thread.py",
    "take_gil",
    "std::sync::mpsc::Receiver<T>::recv",
  ])("keeps %s", (fn) => expect(matches("Without idle runtimes", { fn })).toBe(false));
});

describe("all presets", () => {
  it("are filters that the window knows", () => {
    for (const { filters } of FILTER_PRESETS) {
      const text = withFilters("", filters);
      expect(filterParameters(parseFilters(text))).toEqual(filters);
    }
  });
});
