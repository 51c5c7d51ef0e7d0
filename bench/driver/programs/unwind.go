// Recursion, goroutines, closures, allocation and garbage collection.
package main

import "sort"

var sink uint64

//go:noinline
func burn(rounds int) {
	state := sink
	for i := 0; i < rounds; i++ {
		state = state*6364136223846793005 + 1
	}
	sink = state
}

//go:noinline
func descend(depth int, rounds int) []byte {
	if depth == 0 {
		burn(rounds)
		return make([]byte, 1024)
	}
	return append(descend(depth-1, rounds), byte(depth))
}

// Rounds of a fixed length fall into step with the sampling clock: each lasts 10 to 25 ms, and none
// as long as the one before.
func randomBetween(seed *uint32, least int, most int) int {
	*seed = *seed*1664525 + 1013904223
	return least + int(*seed>>16)%(most-least)
}

func main() {
	go func() {
		seed := uint32(7)
		for {
			values := make([]int, randomBetween(&seed, 20000, 50000))
			for i := range values {
				values[i] = i * 7919 % 1009
			}
			sort.Slice(values, func(i, j int) bool { burn(20); return values[i] < values[j] })
		}
	}()
	seed := uint32(1)
	for {
		descend(40, randomBetween(&seed, 6000, 18000)*500)
		// Allocation, often enough to be sampled.
		for small := randomBetween(&seed, 500, 1500); small > 0; small-- {
			descend(40, 100)
		}
	}
}
