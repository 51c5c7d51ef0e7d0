// Burns CPU in templates, virtual calls, sorting, and exceptions that unwind through ten frames.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual double area(int depth) const = 0;
};

struct Square : Shape {
	double side;
	explicit Square(double length) : side(length) {}
	__attribute__((noinline)) double area(int depth) const override
	{
		std::string guard(depth, 'x');
		if (depth == 0)
			throw std::runtime_error("deep enough");
		return area(depth - 1) + side * guard.size();
	}
};

static void work()
{
	for (;;) {
		try {
			Square(2).area(10);
		} catch (const std::exception &) {
		}
		std::vector<std::string> words;
		std::map<std::string, int> counts;
		for (int i = 0; i < 200; i++)
			words.push_back(std::to_string(i * 7919 % 1009));
		std::sort(words.begin(), words.end());
		for (const auto &word : words)
			counts[word]++;
	}
}

int main()
{
	std::puts("ready");
	std::fflush(stdout);
	std::thread other(work);
	work();
}
