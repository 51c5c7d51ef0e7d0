// As shares.c, in Go: goroutines, so that stacks are not those of the system.
// Usage: shares_go ROUNDS
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

var sink uint64

//go:noinline
func burnFifty(state uint64, scale int) uint64 {
	for round := 0; round < 333*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnThirty(state uint64, scale int) uint64 {
	for round := 0; round < 332*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnTwenty(state uint64, scale int) uint64 {
	for round := 0; round < 331*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

// The CPU time of this thread, seconds.
func cpuTime() float64 {
	const thread = 1
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) * 1e-9
}

//go:noinline
func descend(depth int, rounds int) uint64 {
	if depth > 1 {
		return descend(depth-1, rounds) + 1
	}
	state := uint64(1)
	random := uint32(1)
	functions := []struct {
		burn        func(uint64, int) uint64
		share, time float64
	}{{burnFifty, 0.5, 0}, {burnThirty, 0.3, 0}, {burnTwenty, 0.2, 0}}
	for visit := 0; visit < 3*rounds; visit++ {
		// Long visits of random length, to whatever has the least of its share of CPU time, as in shares.c.
		random = random*1664525 + 1013904223
		scale := 6000 + int(random>>16)%12000
		next := &functions[0]
		for other := range functions {
			if functions[other].time/functions[other].share < next.time/next.share {
				next = &functions[other]
			}
		}
		begun := cpuTime()
		state = next.burn(state, scale)
		next.time += cpuTime() - begun
	}
	return state
}

func main() {
	rounds := 100
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	done := make(chan uint64)
	go func() {
		runtime.LockOSThread()
		done <- descend(40, rounds)
	}()
	sink = <-done
	fmt.Println(sink & 1)
}
