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

template <int Rounds> NOINLINE void burn(int scale)
{
	unsigned long state = sink | 1;
	for (int round = 0; round < Rounds * scale; round++)
		state = mix_inlined(state);
	sink = state;
}

struct Guard {
	volatile int depth;
	explicit Guard(int depth) : depth(depth) {}
	NOINLINE ~Guard() { sink += depth; }
};

NOINLINE void descend(int depth, int scale)
{
	Guard guard(depth);
	if (depth > 1) {
		descend(depth - 1, scale);
		return;
	}
	burn<500>(scale);
	burn<300>(scale);
	burn<200>(scale);
	throw Done("unwound");
}

} // namespace burner

static int caught;

static void descend_and_catch(int scale)
{
	try {
		burner::descend(30, scale);
	} catch (const burner::Done &) {
		caught++;
	}
}

int main(int count, char **arguments)
{
	std::clock_t end = CLOCKS_PER_SEC * (count > 1 ? std::atof(arguments[1]) : 2);
	unsigned int seed = 1;
	while (std::clock() < end) {
		// Long rounds of random length, as in shares.c.
		seed = seed * 1664525u + 1013904223u;
		descend_and_catch(6000 + (int)((seed >> 16) % 12000));
		// Throwing itself, often enough to be sampled.
		for (int thrown = 0; thrown < 100; thrown++)
			descend_and_catch(0);
	}
	std::printf("%d\n", caught & 1);
	return 0;
}
