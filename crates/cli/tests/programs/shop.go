// A program that offers its profiles: one function burns CPU time, one allocates, one waits for a
// lock that another goroutine holds. It prints its address. With the argument "silent" it samples no locks.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	basket []byte
	stock  sync.Mutex
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
func takeFromStock() {
	stock.Lock()
	time.Sleep(time.Millisecond)
	stock.Unlock()
}

func main() {
	if len(os.Args) == 1 {
		runtime.SetMutexProfileFraction(1)
		runtime.SetBlockProfileRate(1)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go http.Serve(listener, nil)
	// Go 1.19 of Debian 12 ranges over no numbers.
	for worker := 0; worker < 2; worker++ {
		go func() {
			for {
				takeFromStock()
			}
		}()
	}
	for {
		priceEverything(2_000_000)
		fillBasket()
	}
}
