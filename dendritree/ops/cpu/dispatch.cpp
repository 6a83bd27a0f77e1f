// The C interface: the kernels of the best instruction set that this machine has, run in several threads.
//
// Threads are those of the OpenMP library that torch uses, if the caller passes its GOMP_parallel: they stay awake between
// operations and take over work in 1 to 5 microseconds. Otherwise a small pool of our own. A forked child has none of its
// parent's threads, so one thread does all the work there, as in torch.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>
#if !defined(_WIN32)
#include <pthread.h>
#endif

#include "kernels.hpp"

#if defined(__x86_64__)
extern const Kernels *const kernels_base, *const kernels_avx2, *const kernels_avx512;
#else
extern const Kernels *const kernels_base;
#endif

namespace {

struct Choice {
    const char *name;
    const Kernels *kernels;
};

Choice choose_kernels() {
    const char *wanted = std::getenv("DENDRITREE_CPU");
    auto allows = [&](const char *name) { return !wanted || !*wanted || !std::strcmp(wanted, name); };
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (has_avx512 && has_avx2 && allows("avx512")) return {"avx512", kernels_avx512};
    if (has_avx2 && allows("avx2")) return {"avx2", kernels_avx2};
#endif
    return {"base", kernels_base};
}

const Choice &selected() {
    static const Choice choice = choose_kernels();
    return choice;
}

// ---------------------------------------------------------------------------------------------------------- threads

std::atomic<bool> is_forked_child{false};

class Pool {
  public:
    void run(void (*work)(void *), void *call, int threads) {
        std::unique_lock<std::mutex> one_at_a_time(entry);
        {
            std::lock_guard<std::mutex> guard(mutex);
            while (int(workers.size()) < threads - 1) workers.emplace_back([this] { serve(); });
            job = {work, call};
            waiting = busy = threads - 1;
        }
        wake.notify_all();
        work(call);
        std::unique_lock<std::mutex> guard(mutex);
        finished.wait(guard, [this] { return busy == 0; });
    }

  private:
    struct Job {
        void (*work)(void *);
        void *call;
    } job{};
    std::vector<std::thread> workers;
    std::mutex entry, mutex;
    std::condition_variable wake, finished;
    int waiting = 0, busy = 0;

    void serve() {
        std::unique_lock<std::mutex> guard(mutex);
        while (true) {
            wake.wait(guard, [this] { return waiting > 0; });
            waiting--;
            Job mine = job;
            guard.unlock();
            mine.work(mine.call);
            guard.lock();
            if (--busy == 0) finished.notify_one();
        }
    }
};

Pool &pool() {
    static Pool *one = [] {
#if !defined(_WIN32)
        pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
#endif
        return new Pool;  // never destroyed: its threads live as long as the process
    }();
    return *one;
}

using Parallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
Parallel openmp = nullptr;

void run(void (*work)(void *), void *call, int threads) {
    if (threads == 1 || is_forked_child) work(call);
    else if (openmp) openmp(work, call, unsigned(threads), 0);
    else pool().run(work, call, threads);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char *dendritree_cpu() { return selected().name; }
EXPORT int64_t dendritree_size(int which) { return which ? int64_t(sizeof(DenseCall)) : int64_t(sizeof(Call)); }
EXPORT void dendritree_use_openmp(Parallel parallel) {
    openmp = parallel;
#if !defined(_WIN32)
    if (parallel) pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
#endif
}

// `lanes` is the place of the tile length in (16, 64, 128).
EXPORT void dendritree_forward(Call *call, int is_double, int lanes, int threads) {
    run(selected().kernels->forward[is_double][lanes], call, threads);
}
EXPORT void dendritree_backward(Call *call, int is_double, int lanes, int threads) {
    run(selected().kernels->backward[is_double][lanes], call, threads);
}
EXPORT void dendritree_dense(DenseCall *call, int is_double, int threads) {
    run(selected().kernels->dense[is_double], call, threads);
}
