// The CUDA driver of a GPU that is a timeline: the calls of a job, with their true times. Kernels run one after the
// other, copies beside them; what each is, and when it ran, lies in a file that fake-nvml reads (timeline.rs has the
// layout). A call that waits really waits. Built as libcuda.so.1 by gpu.py.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RING = 1 << 16, GPUS = 8 };
enum kind { KERNEL, TO_GPU, FROM_GPU };

struct entry {
    uint64_t begin, end;
    uint32_t pid, power_mw;
    uint16_t memory_controller, kind;
    uint32_t kib;
};

struct gpu {
    uint64_t count, received, sent;
    // For the jobs: when the last kernel and the last copy end; who appends.
    uint64_t kernels_end, copies_end;
    uint32_t lock, unused[5];
    struct entry ring[RING];
};

_Static_assert(sizeof(struct entry) == 32 && sizeof(struct gpu) == 64 + RING * 32, "timeline.rs");

// Ranks meet here, once for each collective.
struct group {
    uint32_t round, arrived;
    uint64_t latest;
};

static struct gpu *gpu;
static uint64_t own_end;
static double own_busy;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

int cuInit(const char *path, int which) {
    int fd = open(path, O_RDWR);
    if (fd < 0 || ftruncate(fd, sizeof(struct gpu) * GPUS) != 0)
        return errno;
    void *all = mmap(NULL, sizeof(struct gpu) * GPUS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (all == MAP_FAILED)
        return errno;
    gpu = (struct gpu *)all + which;
    return 0;
}

static void lock(void) {
    while (__atomic_exchange_n(&gpu->lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void unlock(void) {
    __atomic_store_n(&gpu->lock, 0, __ATOMIC_RELEASE);
}

// Back to back with one of the same kind it is one entry; returns where it lies.
static struct entry *append(struct entry made) {
    struct entry *last = &gpu->ring[(gpu->count - 1) % RING];
    int same = gpu->count && last->pid == made.pid && last->power_mw == made.power_mw && last->kind == made.kind &&
               last->memory_controller == made.memory_controller && made.kind == KERNEL && last->end == made.begin;
    if (same) {
        __atomic_store_n(&last->end, made.end, __ATOMIC_RELEASE);
        return last;
    }
    struct entry *next = &gpu->ring[gpu->count % RING];
    *next = made;
    __atomic_store_n(&gpu->count, gpu->count + 1, __ATOMIC_RELEASE);
    return next;
}

void cuLaunchKernel(double seconds, double watts, int memory_controller) {
    uint64_t length = seconds * 1e9;
    lock();
    uint64_t begin = later(now_ns(), gpu->kernels_end);
    gpu->kernels_end = own_end = begin + length;
    append((struct entry){begin, begin + length, getpid(), watts * 1000, memory_controller, KERNEL, 0});
    unlock();
    own_busy += seconds;
}

// The same after what a framework's dispatcher and the driver do on the CPU for each launch.
void cudaLaunchKernel(double seconds, double watts, int memory_controller, double cpu_seconds) {
    for (uint64_t end = now_ns() + (uint64_t)(cpu_seconds * 1e9); now_ns() < end;)
        ;
    cuLaunchKernel(seconds, watts, memory_controller);
}

static void sleep_until(uint64_t end) {
    for (;;) {
        uint64_t now = now_ns();
        if (now >= end)
            return;
        struct timespec left = {(end - now) / 1000000000, (end - now) % 1000000000};
        ppoll(NULL, 0, &left, NULL);
    }
}

// As CUDA does it by default (spinning), or with cudaDeviceScheduleBlockingSync.
void cuStreamSynchronize(int spinning) {
    if (!spinning)
        sleep_until(own_end);
    while (now_ns() < own_end)
        ;
}

// From pageable memory the CPU copies to a staging buffer while the link is busy.
static void copy(double seconds, const void *from, uint64_t bytes, int pageable, enum kind kind) {
    uint64_t length = seconds * 1e9;
    lock();
    uint64_t begin = later(now_ns(), gpu->copies_end), end = begin + length;
    gpu->copies_end = end;
    *(kind == TO_GPU ? &gpu->received : &gpu->sent) += bytes;
    append((struct entry){begin, end, getpid(), 0, 0, kind, bytes / 1024});
    unlock();
    static char staging[4 << 20];
    for (uint64_t at = 0; pageable && now_ns() < end; at = (at + sizeof staging) % bytes)
        memcpy(staging, (const char *)from + at, bytes - at < sizeof staging ? bytes - at : sizeof staging);
    sleep_until(end);
}

void cuMemcpyHtoD(double seconds, const void *from, uint64_t bytes, int pageable) {
    copy(seconds, from, bytes, pageable, TO_GPU);
}

void cuMemcpyDtoH(double seconds, const void *to, uint64_t bytes, int pageable) {
    copy(seconds, to, bytes, pageable, FROM_GPU);
}

// The kernel of a collective spins until the last rank's has begun, and then moves data for `seconds`.
void ncclAllReduce(struct group *group, int ranks, double seconds, double watts) {
    lock();
    uint64_t begin = later(now_ns(), gpu->kernels_end);
    struct entry *spinning = append((struct entry){begin, UINT64_MAX, getpid(), watts * 1000, 5, KERNEL, 0});
    unlock();
    sleep_until(begin);
    uint32_t round = __atomic_load_n(&group->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&group->arrived, 1, __ATOMIC_ACQ_REL) == (uint32_t)ranks) {
        group->arrived = 0;
        group->latest = now_ns();
        __atomic_store_n(&group->round, round + 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &group->round, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
    while (__atomic_load_n(&group->round, __ATOMIC_ACQUIRE) == round)
        syscall(SYS_futex, &group->round, FUTEX_WAIT, round, NULL, NULL, 0);
    uint64_t end = group->latest + (uint64_t)(seconds * 1e9);
    lock();
    __atomic_store_n(&spinning->end, end, __ATOMIC_RELEASE);
    gpu->kernels_end = own_end = end;
    unlock();
    own_busy += (end - begin) / 1e9;
    sleep_until(end);
}

// Seconds of kernels so far, those that are queued left out.
double deviceBusySeconds(void) {
    uint64_t now = now_ns();
    return own_busy - (own_end > now ? (own_end - now) / 1e9 : 0);
}
