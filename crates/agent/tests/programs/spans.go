// Works on spans in several goroutines and labels them with their ids, as tracers do. Runs until it is killed; says
// "ready" first.
package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"
)

var sink uint64

func work() {
	for start := time.Now(); time.Since(start) < 3*time.Millisecond; {
		for number := uint64(0); number < 1000; number++ {
			sink ^= number
		}
	}
}

//go:noinline
func serve_first() {
	work()
	runtime.Gosched()
}

//go:noinline
func serve_second() {
	work()
	runtime.Gosched()
}

//go:noinline
func serve_nobody() {
	work()
	runtime.Gosched()
}

func serve(trace, span, route string, serve func()) {
	labels := pprof.Labels(
		"trace_id", strings.Repeat(trace, 16),
		"span_id", strings.Repeat(span, 8),
		"route", route,
	)
	for {
		pprof.Do(context.Background(), labels, func(context.Context) { serve() })
		serve_nobody()
	}
}

func main() {
	// More goroutines than threads: these change what they work on.
	for range 3 {
		go serve("11", "1a", "/first", serve_first)
		go serve("22", "2b", "/second/"+strings.Repeat("x", 80), serve_second)
	}
	fmt.Println("ready")
	select {}
}
