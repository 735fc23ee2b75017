/* The least a sampler can cost: one pread of each file a recorder keeps open, nothing parsed.
 *
 *   floor SAMPLES PAUSE_US READDIRS FILE...
 *
 * READDIRS: how often per sample /proc is listed, as the recorder does. Prints the thread's CPU time per sample in
 * nanoseconds, pauses included. File systems (statvfs) are left out: the recorder asks them in another process. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];

static long long cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sample(const int *fds, int count, int readdirs) {
    for (int i = 0; i < count; i++)
        if (pread(fds[i], buffer, sizeof buffer, 0) < 0) {
            perror("pread");
            exit(1);
        }
    for (int i = 0; i < readdirs; i++) {
        DIR *proc = opendir("/proc");
        while (proc && readdir(proc)) {
        }
        if (proc) closedir(proc);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "floor SAMPLES PAUSE_US READDIRS FILE...\n");
        return 2;
    }
    int samples = atoi(argv[1]), readdirs = atoi(argv[3]), count = argc - 4;
    struct timespec pause = {atol(argv[2]) / 1000000, atol(argv[2]) % 1000000 * 1000};
    int *fds = calloc(count, sizeof *fds);
    for (int i = 0; i < count; i++) {
        fds[i] = open(argv[4 + i], O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) {
            perror(argv[4 + i]);
            return 1;
        }
    }
    for (int i = 0; i < 3; i++) sample(fds, count, readdirs);
    long long start = cpu_ns();
    for (int i = 0; i < samples; i++) {
        sample(fds, count, readdirs);
        if (pause.tv_sec || pause.tv_nsec) nanosleep(&pause, NULL);
    }
    printf("%lld\n", (cpu_ns() - start) / samples);
    return 0;
}
