// Burns CPU in C called from Go called from C called from Go.
package main

/*
#include <stdlib.h>
extern int fromC(int);
static int burn(int depth)
{
	volatile int sum = 0;
	if (depth > 0)
		return burn(depth - 1) + 1;
	for (int i = 0; i < 20000; i++)
		sum += i;
	return fromC(sum);
}
*/
import "C"
import "fmt"

//export fromC
func fromC(value C.int) C.int {
	total := 0
	for i := 0; i < 5000; i++ {
		total += i % (int(value&7) + 1)
	}
	return C.int(total)
}

func main() {
	fmt.Println("ready")
	for {
		C.burn(10)
	}
}
