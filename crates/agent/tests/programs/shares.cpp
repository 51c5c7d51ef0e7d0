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

// Burns so many thousandths of the CPU time, in visits of nearly the same length.
template <int Share> NOINLINE void burn(int scale)
{
	unsigned long state = sink | 1;
	for (int round = 0; round < (333 - Share / 100) * scale; round++)
		state = mix_inlined(state);
	sink = state;
}

struct Function {
	void (*burn)(int scale);
	double share;
	double time;

	double part() const { return time / share; }
};

static Function functions[] = {{burn<500>, 500, 0}, {burn<300>, 300, 0}, {burn<200>, 200, 0}};

// Visits the function that has the least of its share of CPU time, as shares.c does.
static void visit(int scale)
{
	Function *next = functions;
	for (Function &other : functions)
		if (other.part() < next->part())
			next = &other;
	std::clock_t begun = std::clock();
	next->burn(scale);
	next->time += std::clock() - begun;
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
	for (int visits = 0; scale > 0 && visits < 3; visits++)
		visit(scale);
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
		// Long visits of random length, as in shares.c.
		seed = seed * 1664525u + 1013904223u;
		descend_and_catch(6000 + (int)((seed >> 16) % 12000));
		// Throwing itself, often enough to be sampled.
		for (int thrown = 0; thrown < 100; thrown++)
			descend_and_catch(0);
	}
	std::printf("%d\n", caught & 1);
	return 0;
}
