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
func burnFifty(state uint64) uint64 {
	for round := 0; round < 50000; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnThirty(state uint64) uint64 {
	for round := 0; round < 30000; round++ {
		state = state*6364136223846793005 + 1442695040888963407
	}
	return state
}

//go:noinline
func burnTwenty(state uint64) uint64 {
	for round := 0; round < 20000; round++ {
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
	for round := 0; round < rounds; round++ {
		state = burnFifty(state)
		state = burnThirty(state)
		state = burnTwenty(state)
	}
	return state
}

func main() {
	rounds := 10000
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	done := make(chan uint64)
	go func() { done <- descend(40, rounds) }()
	sink = <-done
	fmt.Println(sink & 1)
}
