// Go that calls C, which calls Go back, which calls C again: three changes of stacks in one.
package main

/*
#cgo CFLAGS: -O2 -g -fomit-frame-pointer
#include <stdint.h>

extern uint64_t goMiddle(int rounds);

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t c_leaf(int rounds) {
	uint64_t state = sink;
	for (int i = 0; i < rounds; i++)
		state = state * 6364136223846793005u + 1;
	sink = state;
	return state;
}

__attribute__((noinline)) static uint64_t c_descend(int depth, int rounds) {
	if (depth == 0)
		return goMiddle(rounds) + c_leaf(rounds);
	uint64_t sum = c_descend(depth - 1, rounds);
	sink = sum;
	return sum + 1;
}
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

//go:noinline
func goLeaf(rounds int) uint64 {
	state := sink
	for i := 0; i < rounds; i++ {
		state = state*6364136223846793005 + 1
	}
	sink = state
	return state
}

//export goMiddle
func goMiddle(rounds C.int) C.uint64_t {
	return C.uint64_t(goLeaf(int(rounds))) + C.c_leaf(rounds)
}

//go:noinline
func goDescend(depth int, rounds int) uint64 {
	if depth == 0 {
		return uint64(C.c_descend(20, C.int(rounds)))
	}
	return goDescend(depth-1, rounds) + 1
}

// Usage: mixed SECONDS
func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	// Rounds of a fixed length fall into step with the sampling clock.
	seed := uint32(1)
	for time.Now().Before(end) {
		seed = seed*1664525 + 1013904223
		sink += goDescend(20, 10_000_000+int(seed>>16)*200)
	}
}
