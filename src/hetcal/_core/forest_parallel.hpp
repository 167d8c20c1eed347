// Work shared between threads; which thread does what never changes a result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace hetcal {

// Calls work(task, worker) for every task in [0, n_tasks), tasks taken in order by whichever worker is free.
template <class Work>
void parallel_for(std::size_t n_tasks, std::size_t n_workers, Work work) {
    n_workers = std::min(n_workers, n_tasks);
    if (n_workers <= 1) {
        for (std::size_t task = 0; task < n_tasks; ++task) work(task, std::size_t(0));
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto run = [&](std::size_t worker) {
        try {
            for (std::size_t task; (task = next.fetch_add(1)) < n_tasks;) work(task, worker);
        } catch (...) {
            next = n_tasks;
            std::lock_guard<std::mutex> hold(failure_lock);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t worker = 1; worker < n_workers; ++worker) threads.emplace_back(run, worker);
    run(0);
    for (auto &thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hetcal
