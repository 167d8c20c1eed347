// The walks of hh_lanes.hpp, compiled once per instruction set: HETCAL_TARGET names it, the including file gives
// each copy a namespace of its own. (Vector code must be written in a function of the right target: compilers
// choose instructions before they inline.)

typedef float Floats __attribute__((vector_size(HETCAL_WIDTH)));
constexpr std::size_t kLanes = HETCAL_WIDTH / sizeof(float);

HETCAL_TARGET HETCAL_INLINE Floats load(const float *from) {
    Floats value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}
HETCAL_TARGET HETCAL_INLINE void store(const Floats &value, float *to) { __builtin_memcpy(to, &value, sizeof value); }

// max(best, value / product) where the product is positive, else best
HETCAL_TARGET HETCAL_INLINE Floats better(const Floats &best, const Floats &value, const Floats &product) {
    const Floats ratio = value / product, valid = product > 0 ? ratio : best;
    return valid > best ? valid : best;
}

// Both walks fill `nodes.best`. Two classes: the fall in
// impurity, 2 D^2 / (n n_left n_right) with D = n c_left - c n_left, up to a factor that a node's features share.
HETCAL_TARGET HETCAL_INLINE void walk_two_classes(const Neighbourhood &hood, const std::uint16_t *y, LaneNodes &nodes) {
    const Floats n = load(nodes.weight);
    const Floats ones = load(nodes.totals.data() + kLanes), steps[2] = {Floats{} - ones, n - ones};
    const float *counts = nodes.counts.data();
    const Entry *e = hood.entries.data();
    for (std::size_t s = 0; s < hood.spans.size(); ++s) {
        const Span span = hood.spans[s];
        Floats side = {}, d = {}, top = {};
        const auto add = [&](const Entry &entry) HETCAL_TARGET HETCAL_INLINE_LAMBDA {
            const Floats w = load(counts + std::size_t(entry.item) * kLanes);
            side = side + w;
            d = d + w * steps[y[entry.item]];
        };
        const auto evaluate = [&]() HETCAL_TARGET HETCAL_INLINE_LAMBDA {
            const Floats product = side * (n - side);
            top = better(top, d * d + 1e-6f, product);  // above 0 unless the feature is constant
        };
        for (std::uint32_t i = span.low; i < span.middle; ++i) {
            add(e[i]);
            if (i + 1 == span.middle || e[i].code != e[i + 1].code) evaluate();
        }
        side = d = Floats{};
        for (std::uint32_t i = span.high; i-- > span.middle;) {
            add(e[i]);
            if (i == span.middle || e[i].code != e[i - 1].code) evaluate();
        }
        store(top, nodes.best.data() + s * kLanes);
    }
}

// Any number of classes: squares_left / n_left + squares_right / n_right, where squares_right follows from
// squares_left and the products of left and total counts.
HETCAL_TARGET HETCAL_INLINE void walk_classes(const Neighbourhood &hood, const std::uint16_t *y, LaneNodes &nodes) {
    const Floats n = load(nodes.weight);
    const std::size_t n_classes = nodes.n_classes;
    const float *totals = nodes.totals.data();
    float *left = nodes.left.data();
    Floats total_squares = {};
    for (std::size_t c = 0; c < n_classes; ++c)
        total_squares = total_squares + load(totals + c * kLanes) * load(totals + c * kLanes);
    const float *counts = nodes.counts.data();
    const Entry *e = hood.entries.data();
    for (std::size_t s = 0; s < hood.spans.size(); ++s) {
        const Span span = hood.spans[s];
        Floats side = {}, squares = {}, products = {}, top = {};
        const auto reset = [&]() HETCAL_TARGET HETCAL_INLINE_LAMBDA {
            side = squares = products = Floats{};
            for (std::size_t c = 0; c < n_classes * kLanes; ++c) left[c] = 0;
        };
        const auto add = [&](const Entry &entry) HETCAL_TARGET HETCAL_INLINE_LAMBDA {
            const std::size_t c = y[entry.item] * kLanes;
            const Floats w = load(counts + std::size_t(entry.item) * kLanes), count = load(left + c);
            squares = squares + w * (count + count + w);
            products = products + w * load(totals + c);
            store(count + w, left + c);
            side = side + w;
        };
        const auto evaluate = [&]() HETCAL_TARGET HETCAL_INLINE_LAMBDA {
            const Floats other = n - side, product = side * other;
            const Floats other_squares = total_squares - (products + products) + squares;
            top = better(top, squares * other + other_squares * side, product);
        };
        reset();
        for (std::uint32_t i = span.low; i < span.middle; ++i) {
            add(e[i]);
            if (i + 1 == span.middle || e[i].code != e[i + 1].code) evaluate();
        }
        if (span.middle < span.high) {
            reset();
            for (std::uint32_t i = span.high; i-- > span.middle;) {
                add(e[i]);
                if (i == span.middle || e[i].code != e[i - 1].code) evaluate();
            }
        }
        store(top, nodes.best.data() + s * kLanes);
    }
}

HETCAL_TARGET inline void walk(const Neighbourhood &hood, const std::uint16_t *y, LaneNodes &nodes) {
    if (nodes.n_classes == 2)
        walk_two_classes(hood, y, nodes);
    else
        walk_classes(hood, y, nodes);
}
