// As shares.c, in Go: goroutines, so that stacks are not those of the system.
// Usage: shares_go ROUNDS
package main

import (
	"fmt"
	"os"
	"strconv"
)

var sink uint64

//go:noinline
func burnFifty(state uint64, scale int) uint64 {
	for round := 0; round < 500*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnThirty(state uint64, scale int) uint64 {
	for round := 0; round < 300*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnTwenty(state uint64, scale int) uint64 {
	for round := 0; round < 200*scale; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func descend(depth int, rounds int) uint64 {
	if depth > 1 {
		return descend(depth-1, rounds) + 1
	}
	state := uint64(1)
	random := uint32(1)
	for round := 0; round < rounds; round++ {
		// Long rounds of random length, as in shares.c.
		random = random*1664525 + 1013904223
		scale := 6000 + int(random>>16)%12000
		state = burnFifty(state, scale)
		state = burnThirty(state, scale)
		state = burnTwenty(state, scale)
	}
	return state
}

func main() {
	rounds := 100
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	done := make(chan uint64)
	go func() { done <- descend(40, rounds) }()
	sink = <-done
	fmt.Println(sink & 1)
}
