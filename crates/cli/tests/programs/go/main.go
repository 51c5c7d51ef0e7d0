// A shop that profiles itself with Pyroscope's SDK for Go: one function burns CPU time under two
// labels, one allocates, one keeps what it allocates, one waits for a lock that another goroutine
// holds. Its argument is the address of the server.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
)

var (
	basket    []byte
	warehouse [][]byte
	stock     sync.Mutex
)

//go:noinline
func priceEverything(rounds uint64) uint64 {
	sum := uint64(1)
	for round := uint64(0); round < rounds; round++ {
		sum = sum*6364136223846793005 + round
	}
	return sum
}

//go:noinline
func fillBasket() {
	basket = make([]byte, 256<<10)
}

//go:noinline
func fillWarehouse() {
	for range 64 {
		warehouse = append(warehouse, make([]byte, 1<<20))
	}
}

//go:noinline
func takeFromStock() {
	stock.Lock()
	time.Sleep(time.Millisecond)
	stock.Unlock()
}

func main() {
	address := os.Args[1]
	fillWarehouse()
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	_, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "shop.go",
		ServerAddress:   address,
		Tags:            map[string]string{"region": "eu"},
		UploadRate:      2 * time.Second,
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU,
			pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace,
			pyroscope.ProfileInuseObjects, pyroscope.ProfileInuseSpace,
			pyroscope.ProfileMutexCount, pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
			pyroscope.ProfileGoroutines,
		},
		Logger: pyroscope.StandardLogger,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for range 2 {
		go func() {
			for {
				takeFromStock()
			}
		}()
	}
	for {
		pyroscope.TagWrapper(context.Background(), pyroscope.Labels("aisle", "bread"), func(context.Context) {
			priceEverything(15_000_000)
		})
		pyroscope.TagWrapper(context.Background(), pyroscope.Labels("aisle", "milk"), func(context.Context) {
			priceEverything(5_000_000)
		})
		fillBasket()
	}
}
