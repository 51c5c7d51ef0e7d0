// Command go-pprof times github.com/google/pprof on a profile: the peer of the example
// pprof_speed. It prints the best and the median time of a parse in microseconds.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	times := make([]time.Duration, 0, rounds)
	for round := 0; round < rounds; round++ {
		start := time.Now()
		if _, err := profile.ParseData(data); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		times = append(times, time.Since(start))
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	fmt.Println(times[0].Microseconds(), times[len(times)/2].Microseconds())
}
