// As shares.c, with what C++ adds: exceptions thrown through frames, inlining, templates, namespaces.
// Usage: shares_cpp SECONDS
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

#define NOINLINE __attribute__((noinline, noclone))

namespace burner {

static volatile unsigned long sink;

struct Done : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// Inlined into each instance below: must appear as a frame of its own.
__attribute__((always_inline)) inline unsigned long mix_inlined(unsigned long state)
{
	state = state * 6364136223846793005UL + 1442695040888963407UL;
	__asm__ volatile("" : "+r"(state));
	return state;
}

template <int Rounds> NOINLINE void burn()
{
	unsigned long state = sink | 1;
	for (int round = 0; round < Rounds; round++)
		state = mix_inlined(state);
	sink = state;
}

struct Guard {
	volatile int depth;
	explicit Guard(int depth) : depth(depth) {}
	NOINLINE ~Guard() { sink += depth; }
};

NOINLINE void descend(int depth)
{
	Guard guard(depth);
	if (depth > 1) {
		descend(depth - 1);
		return;
	}
	burn<50000>();
	burn<30000>();
	burn<20000>();
	throw Done("unwound");
}

} // namespace burner

int main(int count, char **arguments)
{
	std::clock_t end = CLOCKS_PER_SEC * (count > 1 ? std::atoi(arguments[1]) : 2);
	int caught = 0;
	while (std::clock() < end) {
		try {
			burner::descend(30);
		} catch (const burner::Done &) {
			caught++;
		}
	}
	std::printf("%d\n", caught & 1);
	return 0;
}
