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

// How many workers share the tasks: no more than were asked for, than there are tasks, than there are cores.
inline std::size_t worker_count(std::size_t wanted, std::size_t n_tasks) {
    const std::size_t useful = std::min(wanted, n_tasks);
    if (useful <= 1) return 1;
    return std::max<std::size_t>(1, std::min<std::size_t>(useful, std::thread::hardware_concurrency()));
}

// Threads that are waited for, whatever happens.
class ThreadGroup {
  public:
    ~ThreadGroup() { join(); }

    // Starts run(worker) for the workers first, ..., last - 1. A thread that the system does not grant is done
    // without; returns how many there are. `run` must not throw.
    template <class Run>
    std::size_t start(std::size_t first, std::size_t last, Run run) {
        try {
            threads_.reserve(last - first);
            for (std::size_t worker = first; worker < last; ++worker) threads_.emplace_back(run, worker);
        } catch (const std::exception &) {  // no thread (system_error), or no memory for one (bad_alloc)
        }
        return threads_.size();
    }

    void join() {
        for (auto &thread : threads_) thread.join();
        threads_.clear();
    }

  private:
    std::vector<std::thread> threads_;
};

// Calls work(task, worker) for every task in [0, n_tasks), tasks taken in order by whichever worker is free;
// n_workers comes from worker_count. The calling thread is worker 0.
template <class Work>
void parallel_for(std::size_t n_tasks, std::size_t n_workers, Work work) {
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
    ThreadGroup threads;
    threads.start(1, n_workers, run);
    run(0);
    threads.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hetcal
