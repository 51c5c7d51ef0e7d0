// Exceptions, inlining, virtual calls and a callback through qsort, without frame pointers.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

static volatile uint64_t sink;
static int leaf_rounds;

// Rounds of a fixed length fall into step with the sampling clock: each lasts 10 to 25 ms, and none as
// long as the one before.
static int random_between(int least, int most) {
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return least + (int)(seed >> 16) % (most - least);
}

struct Node {
    virtual ~Node() = default;
    virtual uint64_t visit(int depth) = 0;
};

struct Leaf : Node {
    uint64_t visit(int) override {
        uint64_t state = sink;
        for (int i = 0; i < leaf_rounds; i++)
            state = state * 6364136223846793005u + 1;
        sink = state;
        return state;
    }
};

struct Branch : Node {
    std::vector<std::unique_ptr<Node>> children;
    uint64_t visit(int depth) override {
        uint64_t sum = 0;
        for (auto &child : children)
            sum += child->visit(depth + 1);
        if (sum % 3 == 0)
            throw std::runtime_error("a third of all sums");
        return sum;
    }
};

static std::unique_ptr<Node> build(int depth) {
    if (depth == 0)
        return std::make_unique<Leaf>();
    auto branch = std::make_unique<Branch>();
    branch->children.push_back(build(depth - 1));
    return branch;
}

static int compare(const void *left, const void *right) {
    uint64_t state = sink;
    for (int i = 0; i < 500; i++)
        state = state * 6364136223846793005u + 1;
    sink = state;
    return *static_cast<const int *>(left) - *static_cast<const int *>(right);
}

int main() {
    auto root = build(30);
    for (;;) {
        leaf_rounds = random_between(4000, 12000) * 500;
        // The first visit burns; the others throw and catch.
        for (int visits = random_between(100, 200); visits > 0; visits--) {
            try {
                sink = sink + root->visit(0);
            } catch (const std::exception &) {
                sink = sink + 1;
            }
            leaf_rounds = 100;
        }
        for (int sorts = random_between(10, 30); sorts > 0; sorts--) {
            int values[64];
            for (int &value : values)
                value = std::rand();
            std::qsort(values, 64, sizeof(int), compare);
        }
    }
}
