// Threads for the parallel operations of a numerical library, as Intel's OpenMP keeps them: they spin between two
// operations for 200 ms before they sleep, whatever else has to run on their CPUs.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static const float *data;
static size_t count;
static int threads;
static atomic_int operation, left;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static volatile float result;

static void part(int which) {
    float sum = 0;
    for (size_t i = count * which / threads; i < count * (which + 1) / threads; i++)
        sum += data[i] / (1.0f + data[i] * data[i]);
    result = sum;
    atomic_fetch_sub(&left, 1);
}

static void *wait_and_work(void *which) {
    for (int done = 0;;) {
        double since = now();
        while (atomic_load(&operation) == done)
            now() - since < 0.2 ? sched_yield() : usleep(1000);
        done = atomic_load(&operation);
        part((int)(size_t)which);
    }
    return NULL;
}

void pool_start(int wanted) {
    threads = wanted;
    for (int n = 1; n < threads; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, wait_and_work, (void *)(size_t)n);
    }
}

void pool_sum(const float *values, size_t length) {
    data = values;
    count = length;
    atomic_store(&left, threads);
    atomic_fetch_add(&operation, 1);
    part(0);
    while (atomic_load(&left))
        sched_yield();
}
