// Burns CPU in goroutines, maps, garbage collection and system calls.
package main

import (
	"fmt"
	"os"
	"sort"
	"time"
)

//go:noinline
func recurse(depth int, values []int) int {
	if depth == 0 {
		sort.Slice(values, func(i, j int) bool { return values[i]^depth < values[j] })
		return values[0]
	}
	return recurse(depth-1, values) + 1
}

func worker() {
	for {
		values := make([]int, 500)
		seen := map[int]int{}
		for i := range values {
			values[i] = (i * 7919) % 1009
			seen[values[i]] = i
		}
		recurse(60, values)
		os.Getppid()
		time.Now()
	}
}

func main() {
	for i := 0; i < 2; i++ {
		go worker()
	}
	fmt.Println("ready")
	select {}
}
