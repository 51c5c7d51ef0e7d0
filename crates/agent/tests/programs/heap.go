// Allocates and keeps counted amounts, by functions of known names, whenever a line comes, and writes its own
// heap profile before and after: `heap DIRECTORY [RATE]`.
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
)

const most = 400_000

var (
	smalls = make([]*[48]byte, 0, most)
	blocks = make([]*[640]byte, 0, most)
	deeps  = make([]*[2048]byte, 0, most)
	names  = map[string]int{}
	last   []byte
)

type keeper struct{ count int }

//go:noinline
func (k *keeper) small() {
	for i := 0; i < k.count; i++ {
		smalls = append(smalls, new([48]byte))
	}
}

func block() *[640]byte { return new([640]byte) }

func twoBlocks() (*[640]byte, *[640]byte) { return block(), block() }

//go:noinline
func inlining(count int) {
	for i := 0; i < count; i++ {
		first, second := twoBlocks()
		blocks = append(blocks, first, second)
	}
}

//go:noinline
func large(count int) {
	for i := 0; i < count; i++ {
		last = make([]byte, 1<<20)
	}
}

// The runtime makes room for maps and strings.
//
//go:noinline
func mapped(count int) {
	for i := 0; i < count; i++ {
		names["number "+strconv.Itoa(len(names))] = i
	}
}

// Deeper than any stack of a heap profile.
//
//go:noinline
func deep(depth, count int) {
	if depth > 0 {
		deep(depth-1, count)
		return
	}
	for i := 0; i < count; i++ {
		deeps = append(deeps, new([2048]byte))
	}
}

func allocate() {
	(&keeper{60_000}).small()
	inlining(10_000)
	large(30)
	mapped(20_000)
	deep(200, 3_000)
}

// What was published is what two collections have seen.
func write(path string) {
	runtime.GC()
	runtime.GC()
	file, err := os.Create(path)
	if err == nil {
		err = pprof.WriteHeapProfile(file)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		panic(err)
	}
}

func main() {
	if len(os.Args) > 2 {
		rate, err := strconv.Atoi(os.Args[2])
		if err != nil {
			panic(err)
		}
		runtime.MemProfileRate = rate
	}
	// Nothing is collected but by us.
	debug.SetGCPercent(-1)
	allocate()
	write(filepath.Join(os.Args[1], "before.pb.gz"))
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan()
	allocate()
	for i := range smalls {
		if i%3 == 0 {
			smalls[i] = nil
		}
	}
	write(filepath.Join(os.Args[1], "after.pb.gz"))
	fmt.Println("done")
	lines.Scan()
}
