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
func descend(depth int) []byte {
	if depth == 0 {
		burn(20000)
		return make([]byte, 1024)
	}
	return append(descend(depth-1), byte(depth))
}

func main() {
	go func() {
		for {
			values := make([]int, 300)
			for i := range values {
				values[i] = i * 7919 % 1009
			}
			sort.Slice(values, func(i, j int) bool { burn(20); return values[i] < values[j] })
		}
	}()
	for {
		descend(40)
	}
}
