// Writes each of its profiles as pprof and as text, the pprof before and after the text: where both
// are equal, the text is of the same moment.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"time"
)

var kept [][]byte

//go:noinline
func keepSmall() {
	for i := 0; i < 3000; i++ {
		kept = append(kept, make([]byte, 900))
	}
}

//go:noinline
func keepLarge() {
	for i := 0; i < 30; i++ {
		kept = append(kept, make([]byte, 200000))
	}
}

//go:noinline
func giveBack() (sum int) {
	for i := 0; i < 400; i++ {
		sum += len(make([]byte, 10000+i))
	}
	return sum
}

// Each depth is a stack of its own.
//
//go:noinline
func contend(depth int, mutex *sync.Mutex, done *sync.WaitGroup) {
	if depth > 0 {
		contend(depth-1, mutex, done)
		return
	}
	for i := 0; i < 20; i++ {
		mutex.Lock()
		time.Sleep(time.Millisecond)
		mutex.Unlock()
	}
	done.Done()
}

//go:noinline
func waitForever(channel chan int) {
	<-channel
}

func write(folder string, name string, suffix string, debug int) {
	file, err := os.Create(filepath.Join(folder, name+suffix))
	if err != nil {
		panic(err)
	}
	if err := pprof.Lookup(name).WriteTo(file, debug); err != nil {
		panic(err)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
}

func main() {
	runtime.MemProfileRate = 4096
	debug.SetGCPercent(-1)
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(3)
	keepSmall()
	keepLarge()
	giveBack()
	// Before Go 1.20 a text does not tell whether its counts were multiplied by the fraction, other than
	// by counts that are no multiples of it. That so many all are multiples happens once in 6561 times.
	var done sync.WaitGroup
	for depth := 0; depth < 8; depth++ {
		mutex := new(sync.Mutex)
		for i := 0; i < 4; i++ {
			done.Add(1)
			go contend(depth, mutex, &done)
		}
	}
	done.Wait()
	runtime.SetBlockProfileRate(0)
	channel := make(chan int)
	for i := 0; i < 5; i++ {
		go waitForever(channel)
	}
	pprof.Do(context.Background(), pprof.Labels("job", "a \"b\""), func(context.Context) {
		go waitForever(channel)
	})
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	runtime.GC()
	for attempt := 0; attempt < 5; attempt++ {
		folder := filepath.Join(os.Args[1], fmt.Sprint(attempt))
		if err := os.Mkdir(folder, 0o755); err != nil {
			panic(err)
		}
		for _, name := range []string{"heap", "goroutine", "threadcreate", "block", "mutex"} {
			write(folder, name, ".before", 0)
			write(folder, name, ".1", 1)
			if name == "goroutine" {
				write(folder, name, ".2", 2)
			}
			write(folder, name, ".after", 0)
		}
	}
	runtime.KeepAlive(kept)
}
