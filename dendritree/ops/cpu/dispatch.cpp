// The C interface: the kernels of the best instruction set that this machine supports, run in several threads.
//
// Threads are those of the OpenMP library that torch uses, if the caller passes its GOMP_parallel: they stay awake between
// operations and take over work in 1 to 5 microseconds. Otherwise, a small pool of our own is used. A forked child has
// none of its parent's threads, so one thread does all the work there, as in torch.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#if !defined(_WIN32)
#include <pthread.h>
#endif

#include "kernels.hpp"

extern const Kernels *const kernels_base, *const kernels_avx2, *const kernels_avx512;

namespace {

struct InstructionSet {
    const char *name;
    const Kernels *kernels;
    bool is_supported;
};

const std::vector<InstructionSet> &instruction_sets() {  // the best first
    static const std::vector<InstructionSet> all = {
#if defined(__x86_64__)
        {"avx512", kernels_avx512,
         __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
        {"avx2", kernels_avx2, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
#endif
        {"base", kernels_base, true},
    };
    return all;
}

const Kernels *selected = kernels_base;

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
    static Pool *one = new Pool;  // never destroyed: its threads live as long as the process
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

EXPORT int64_t dendritree_size(int which) {
    return int64_t(which == 0 ? sizeof(Call) : which == 1 ? sizeof(DenseCall) : sizeof(NormCall));
}

// The names of the instruction sets, separated by spaces, the best first.
EXPORT const char *dendritree_instruction_sets(int only_supported) {
    static std::string names[2];
    std::string &list = names[only_supported != 0] = "";
    for (const InstructionSet &each : instruction_sets())
        if (each.is_supported || !only_supported) list += (list.empty() ? "" : " ") + std::string(each.name);
    return list.c_str();
}
EXPORT void dendritree_select(const char *name) {
    for (const InstructionSet &each : instruction_sets())
        if (each.is_supported && !std::strcmp(each.name, name)) selected = each.kernels;
}

// Run on the threads of an OpenMP library, given its GOMP_parallel, or on our own if null. Return whether OpenMP is used.
EXPORT int dendritree_use_openmp(Parallel parallel) {
#if defined(__SANITIZE_THREAD__)
    parallel = nullptr;  // the sanitizer does not see the locks of an OpenMP library
#endif
#if !defined(_WIN32)
    static const int is_registered = pthread_atfork(nullptr, nullptr, [] { is_forked_child = true; });
    (void)is_registered;
#endif
    openmp = parallel;
    return parallel != nullptr;
}

// `lanes` is the index of the tile length in (16, 64, 128).
EXPORT void dendritree_forward(Call *call, int is_double, int lanes, int threads) {
    call->caller = &this_thread;
    run(selected->forward[is_double][lanes], call, threads);
}
EXPORT void dendritree_backward(Call *call, int is_double, int lanes, int threads) {
    call->caller = &this_thread;
    run(selected->backward[is_double][lanes], call, threads);
}
EXPORT void dendritree_dense(DenseCall *call, int is_double, int threads) { run(selected->dense[is_double], call, threads); }
EXPORT void dendritree_normalize(NormCall *call, int is_double, int is_backward, int threads) {
    const auto take = [&](NormStep step, int workers) {
        call->step = step;
        call->taken = 0;
        run(selected->normalize[is_double], call, workers);
    };
    if (is_backward) take(PREPARE_GRADIENTS, 1);
    take(is_backward ? GRADIENT_SUMS : MOMENTS, threads);
    take(is_backward ? COMBINE_GRADIENTS : COMBINE_MOMENTS, 1);
    take(is_backward ? APPLY_GRADIENTS : APPLY, threads);
}
