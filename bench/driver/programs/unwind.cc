// Exceptions, inlining, virtual calls and a callback through qsort, without frame pointers.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

static volatile uint64_t sink;

struct Node {
    virtual ~Node() = default;
    virtual uint64_t visit(int depth) = 0;
};

struct Leaf : Node {
    uint64_t visit(int) override {
        uint64_t state = sink;
        for (int i = 0; i < 20000; i++)
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
        try {
            sink = sink + root->visit(0);
        } catch (const std::exception &) {
            sink = sink + 1;
        }
        int values[64];
        for (int &value : values)
            value = std::rand();
        std::qsort(values, 64, sizeof(int), compare);
    }
}
